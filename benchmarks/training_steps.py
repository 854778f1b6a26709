"""Training steps of layers, forward and backward, on any backend: what benchmarks of layers time.

A step is the loss and its gradients by every weight and the sequence. On TensorFlow it is a
`tf.function`, on JAX compiled, on PyTorch eager. On JAX a rival of `benchmarks.torch_layers` is
compiled by PyTorch; the batch of both lies on the device before the clock starts.
"""

import contextlib
import dataclasses
import importlib.metadata
import os
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks import harness, torch_layers

ROUNDINGS = 4  # that may add up in one direction, beside those that cancel out


def padded_batch(batch_size, length, features):
    """Map (B, T, D) float32 sequences and a (B, T) mask of T / 2 to T steps; the first row is
    full."""
    rng = np.random.default_rng(batch_size)
    lengths = rng.integers(length // 2, length, batch_size, endpoint=True)
    lengths[0] = length
    sequences = rng.normal(size=(batch_size, length, features)).astype(np.float32)
    return sequences, np.arange(length) < lengths[:, np.newaxis]


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step: called, (arrays ...) -> [loss, gradients ...], and nothing of it is left to
    be computed.

    Args:
        run: the step of arrays that lie where it computes.
        place: (arrays ...) -> those.
        read: what `run` returns -> [loss, gradients ...] in the order and form of our weights.
    """

    run: Callable
    place: Callable = lambda *arrays: arrays
    read: Callable = list

    def __call__(self, *arrays):
        return self.read(self.run(*self.place(*arrays)))


def times_of(steps, batch, rounds):
    """Return the times in turn of steps by name, of a batch that lies where they compute."""
    placed = {name: step.place(*batch) for name, step in steps.items()}
    return harness.times_in_turn(
        {name: lambda _, name=name: steps[name].run(*placed[name]) for name in steps}, rounds
    )


def training_step(layer, batch, features, xla=False):
    """Return the `Step` of a layer, of sequences and a mask.

    Args:
        layer: of a sequence and a mask, built, or one of `benchmarks.torch_layers`.
        batch: of the shapes to trace for; None: any.
        features: the sequences' last axis.
        xla: on TensorFlow, whether XLA compiles the step.
    """
    import keras

    if isinstance(layer, torch_layers.Recurrent):
        return _rival_step(layer)
    if keras.backend.backend() == "tensorflow":
        return _tensorflow_step(layer, batch, features, xla)
    return {"jax": _jax_step, "torch": _torch_step}[keras.backend.backend()](layer)


def _loss(outputs, mask):
    """Return of the real steps; what a layer gives at the others differs."""
    from keras import ops

    return ops.sum(ops.square(outputs) * ops.cast(mask, outputs.dtype)[..., None])


def _tensorflow_step(layer, batch, features, xla):
    import tensorflow as tf

    shape = (None, None) if batch is None else batch[1].shape
    weights = [variable.value for variable in layer.trainable_variables]

    @tf.function(
        input_signature=[tf.TensorSpec((*shape, features)), tf.TensorSpec(shape, tf.bool)],
        jit_compile=xla,
        autograph=False,
    )
    def step(sequences, mask):
        with tf.GradientTape() as tape:
            tape.watch(sequences)
            loss = _loss(layer(sequences, mask=mask, training=True), mask)
        return [loss, *tape.gradient(loss, [sequences, *weights])]

    return Step(lambda sequences, mask: [tensor.numpy() for tensor in step(sequences, mask)])


def _jax_step(layer):
    def loss(weights, fixed, sequences, mask):
        outputs, _ = layer.stateless_call(weights, fixed, sequences, mask=mask, training=True)
        return _loss(outputs, mask)

    return jax_step(loss, layer, by_batch=(2,))


def jax_step(loss, model, by_batch=()):
    """Return the `Step` of a loss on JAX, compiled.

    Args:
        loss: (weights, what is not trained, arrays of the batch ...) -> a number.
        model: a layer or model of Keras with those weights.
        by_batch: which further arguments of the loss have gradients, by their place in it.
    """
    import jax

    both = jax.jit(jax.value_and_grad(loss, argnums=(*by_batch, 0)))
    weights = [variable.value for variable in model.trainable_variables]
    fixed = [variable.value for variable in model.non_trainable_variables]

    def run(*batch):
        value, gradients = jax.block_until_ready(both(weights, fixed, *batch))
        *by_batch, by_weights = gradients
        return [value, *by_batch, *by_weights]

    return Step(run, lambda *arrays: jax.device_put(arrays))


def _rival_step(layer):
    step = torch_step(layer.module, lambda *batch: _torch_loss(layer.outputs(*batch), batch[1]))

    def read(tensors):
        value, by_sequences, *by_weights = step.read(tensors)
        return [value, by_sequences, *layer.in_order(by_weights)]

    return dataclasses.replace(step, read=read)


def _torch_loss(outputs, mask):
    return (outputs.square() * mask[..., None]).sum()


def torch_step(module, loss):
    """Return the `Step` of a loss on PyTorch, compiled, on a GPU where there is one.

    Args:
        module: a `torch.nn.Module` with its weights.
        loss: (tensors of the batch ...) -> a number.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    module.to(device)
    compiled, weights = torch.compile(loss), list(module.parameters())

    def place(*arrays):
        tensors = [torch.from_numpy(array).to(device) for array in arrays]
        return [tensor.requires_grad_(tensor.is_floating_point()) for tensor in tensors]

    def run(*tensors):
        value = compiled(*tensors)
        inputs = [tensor for tensor in tensors if tensor.requires_grad]
        gradients = torch.autograd.grad(value, [*inputs, *weights])
        if device == "cuda":
            torch.cuda.synchronize()
        return [value, *gradients]

    def read(tensors):
        return [tensor.detach().float().cpu().numpy() for tensor in tensors]

    return Step(run, place, read)


def _torch_step(layer):
    import torch
    from keras import ops

    weights = [variable.value for variable in layer.trainable_variables]

    def step(sequences, mask):
        sequences, mask = ops.convert_to_tensor(sequences), ops.convert_to_tensor(mask)
        sequences.requires_grad_()
        value = _loss(layer(sequences, mask=mask, training=True), mask)
        gradients = torch.autograd.grad(value, [sequences, *weights])
        return [tensor.detach().cpu() for tensor in (value, *gradients)]

    return Step(step)


@contextlib.contextmanager
def precise():
    """Compute the products of float32 as such within; elsewhere a GPU takes TF32 for them, which is
    JAX's default."""
    import keras

    if keras.backend.backend() != "jax":
        yield
        return
    import jax

    with jax.default_matmul_precision("highest"), torch_layers.precise():
        yield


def on_gpu():
    """Return whether JAX is the backend and computes on a GPU."""
    return bool(_gpu())


def check_agreement(label, steps, batch):
    """Compare the losses, and the gradients of all tensors together: largest difference over
    largest value.

        tolerance = ROUNDINGS * epsilon * sqrt(size of the largest tensor)

    A gradient sums as many rounded products as its layer has inputs and the batch has steps, and
    independent roundings grow with the root of their number.
    """
    with precise():
        ours, *rivals = ([np.asarray(array) for array in step(*batch)] for step in steps.values())
    for rival, arrays in zip(list(steps)[1:], rivals, strict=True):
        worst = max(_difference(ours[:1], arrays[:1]), _difference(ours[1:], arrays[1:]))
        if not worst <= _tolerance(arrays):
            raise ValueError(
                f"{label}: loss and gradients do not agree: ours differ by {worst:.1e} of the "
                f"largest value from {rival}"
            )
        print(f"{label}: loss and gradients agree; ours differ by {worst:.1e} from {rival}")


def _tolerance(arrays):
    largest = max(arrays, key=np.size)
    return ROUNDINGS * np.finfo(largest.dtype).eps * np.sqrt(largest.size)


def _difference(ours, rivals):
    largest = max(np.max(np.abs(tensor)) for tensor in rivals)
    pairs = zip(ours, rivals, strict=True)
    return max(np.max(np.abs(own - other)) for own, other in pairs) / largest


def quiet_tensorflow():
    """Import TensorFlow quietly where it is the backend."""
    if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
        from seqkeras.quiet import import_tensorflow

        import_tensorflow()


def import_keras_nlp():
    """Import keras_nlp, which warns as it loads, quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import keras_nlp
    return keras_nlp


def machine():
    """Return what the figures were measured on, and with which backend, in words."""
    import keras

    backend = keras.backend.backend()
    names = ["keras", backend, *(["torch"] if torch_layers.is_there() else [])]
    return harness.machine(**{name: importlib.metadata.version(name) for name in names}, **_gpu())


def _gpu():
    """Return the GPU of JAX by its kind, if there is one."""
    import keras

    if keras.backend.backend() != "jax":
        return {}
    import jax

    first = jax.devices()[0]
    return {"on": first.device_kind} if first.platform == "gpu" else {}
