"""Training steps of layers, forward and backward, on any backend: what benchmarks of layers time.

A step is the loss and its gradients by every weight and the sequence. On TensorFlow it is a
`tf.function`, on JAX compiled, on PyTorch eager.
"""

import importlib.metadata
import os
import warnings

import numpy as np

from benchmarks import harness

ROUNDINGS = 4  # that may add up in one direction, beside those that cancel out


def padded_batch(batch_size, length, features):
    """Map (B, T, D) float32 sequences and a (B, T) mask of T / 2 to T steps; the first row is
    full."""
    rng = np.random.default_rng(batch_size)
    lengths = rng.integers(length // 2, length, batch_size, endpoint=True)
    lengths[0] = length
    sequences = rng.normal(size=(batch_size, length, features)).astype(np.float32)
    return sequences, np.arange(length) < lengths[:, np.newaxis]


def training_step(layer, batch, features, xla=False):
    """Return a function: (sequences, mask) -> [loss, gradients ...] of a layer, and nothing of it
    left to be computed.

    Args:
        layer: of a sequence and a mask, built.
        batch: of the shapes to trace for; None: any.
        features: the sequences' last axis.
        xla: on TensorFlow, whether XLA compiles the step.
    """
    import keras

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

    return lambda sequences, mask: [tensor.numpy() for tensor in step(sequences, mask)]


def _jax_step(layer):
    import jax

    fixed = [variable.value for variable in layer.non_trainable_variables]

    def loss(weights, sequences, mask):
        outputs, _ = layer.stateless_call(weights, fixed, sequences, mask=mask, training=True)
        return _loss(outputs, mask)

    both = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
    weights = [variable.value for variable in layer.trainable_variables]

    def step(sequences, mask):
        value, (by_weights, by_sequences) = jax.block_until_ready(both(weights, sequences, mask))
        return [value, by_sequences, *by_weights]

    return step


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

    return step


def check_agreement(label, steps, batch):
    """Compare the losses, and the gradients of all tensors together: largest difference over
    largest value.

        tolerance = ROUNDINGS * epsilon * sqrt(size of the largest tensor)

    A gradient sums as many rounded products as its layer has inputs and the batch has steps, and
    independent roundings grow with the root of their number.
    """
    ours, *rivals = ([np.asarray(tensor) for tensor in step(*batch)] for step in steps.values())
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
    versions = {name: importlib.metadata.version(name) for name in ("keras", backend)}
    return harness.machine(**versions)
