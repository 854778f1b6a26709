"""Keras's fused recurrent functions, which reach cuDNN on a GPU, under the rules of our own loop.

What Keras 3.15 has: TensorFlow's take a mask if every row is padded on the right and holds a step;
PyTorch's take none. Backwards, TensorFlow's give the outputs in the order in which they were
computed, so the sequence is flipped here instead. On JAX our own loop, which XLA compiles, is
faster than cuDNN's LSTM (docs/speed/layers.md), and Keras has no GRU of it.
"""

import keras
from keras import ops
from keras.src import backend  # a test holds the signatures of its `lstm` and `gru`

from seqkeras.composites.nodes import tracing_nodes


def fused(name, sequence, mask, states, weights, reverse):
    """Run a recurrent network by a fused function of Keras; None if Keras has none for these
    inputs.

    A graph for export never holds one: cuDNN's operators run on a GPU only.

    Args:
        name: name of Keras's function, "lstm" or "gru".
        sequence: (B, T, D).
        mask: (B, T) booleans, any, or None.
        states: list of (B, U).
        weights: kernel, recurrent kernel and bias as that function takes them.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the list of final states; or None.
    """
    sequence, *weights = map(ops.convert_to_tensor, (sequence, *weights))
    if tracing_nodes() or not reached_with(sequence):
        return None
    if mask is not None and keras.backend.backend() != "tensorflow":
        return None
    keras_function = getattr(backend, name)
    try:
        if mask is None:
            outputs, states = _run(
                keras_function, _flipped(sequence, reverse), None, states, weights
            )
            return _flipped(outputs, reverse), states
        return _run_masked(keras_function, sequence, mask, states, weights, reverse)
    except NotImplementedError:
        return None


def reached_with(tensor=None):
    """Return whether these functions are used; on PyTorch, with this tensor."""
    return keras.backend.backend() != "jax" and on_gpu(tensor)


def on_gpu(tensor=None):
    """Return whether computations run on a GPU; on PyTorch, those with this tensor."""
    if keras.backend.backend() == "torch":
        return tensor is not None and tensor.device.type == "cuda"
    return any("gpu" in device.lower() for device in keras.distribution.list_devices())


def _run(keras_function, sequence, mask, states, weights):
    _, outputs, states = keras_function(
        sequence,
        *states,
        mask,
        *weights,
        keras.activations.tanh,
        keras.activations.sigmoid,
        return_sequences=True,
    )
    return outputs, list(states)


def _run_masked(keras_function, sequence, mask, states, weights, reverse):
    """Return an order with a row's real steps first, and lengths; a row without a real step lends
    one."""
    mask = ops.cast(mask, "bool")
    length = ops.shape(mask)[1]
    steps = ops.arange(length)[None]  # (1, T)
    reading = length - 1 - steps if reverse else steps
    order = ops.argsort(ops.where(mask, reading, reading + length), axis=1)  # (B, T)
    lengths = ops.sum(ops.cast(mask, steps.dtype), axis=1, keepdims=True)
    outputs, final = _run(
        keras_function,
        ops.take_along_axis(sequence, order[..., None], axis=1),
        steps < ops.maximum(lengths, 1),
        states,
        weights,
    )
    outputs = ops.take_along_axis(outputs, ops.argsort(order, axis=1)[..., None], axis=1)
    outputs = ops.where(mask[..., None], outputs, ops.zeros_like(outputs))
    return outputs, [ops.where(lengths > 0, new, old) for new, old in zip(final, states)]


def _flipped(sequence, reverse):
    return ops.flip(sequence, axis=1) if reverse else sequence
