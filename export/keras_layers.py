"""Trace Keras's own layers as composites of seqkeras that compute the same.

Otherwise LayerNormalization becomes thirteen nodes, an approximated GELU nine, and a GRU a loop
over its steps (tf2onnx itself recognises an LSTM without a mask). Keras's own code stays for what
the composites lack: masks with gaps, other activations, missing weights.

A `SeedGenerator` does not change its state. Keras's recurrent layers draw dropout masks even
outside of training; no output needs them, but drawing would make the graph write to a variable.

A function that XLA is to compile, as Keras's grouped convolutions are, becomes part of the graph.

A dilated convolution is one operator, as on a TPU; elsewhere TensorFlow spreads its steps over the
batch. Indices below zero are left to ONNX's Gather, and -0.0 is not ordered below 0.0.
"""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

import keras
import tensorflow as tf
from keras.src import backend, ops  # Keras's layers call these names; composites the public
from tensorflow.python.platform import device_context

from seqkeras import composites
from seqkeras.recurrent.gru import gru

Function = type(tf.function(lambda: None))


@contextlib.contextmanager
def as_composites() -> Iterator[None]:
    """Let Keras's layers call the composites in this context."""
    replaced = _replaced(
        (ops, "layer_normalization", _layer_normalization),
        (ops, "gelu", _gelu),
        (backend, "gru", lambda original: _gru),
        (backend.numpy, "take", _take),
        (backend.numpy, "argmax", lambda original: _first_at(tf.argmax)),
        (backend.numpy, "argmin", lambda original: _first_at(tf.argmin)),
        (device_context, "enclosing_tpu_context", lambda original: lambda: True),
        (tf.nn, "separable_conv2d", lambda original: _separable_conv2d),
        (keras.random.SeedGenerator, "next", lambda original: _next_seed),
        (Function, "__call__", _without_xla),
    )
    with replaced, steps_as_rows():
        yield


def steps_as_rows() -> AbstractContextManager[None]:
    """Return a context in which a `TimeDistributed` applies its layer once, to all steps as rows.

    Keras's own code (3.15) maps over as many steps as the batch has rows if both sizes are open.
    """
    return _replaced((keras.layers.TimeDistributed, "call", lambda original: _call_on_rows))


@contextlib.contextmanager
def _replaced(*replacements):
    """Replace functions in this context: (owner, name, the owner's function -> another one)."""
    functions = [getattr(owner, name) for owner, name, _ in replacements]
    try:
        for function, (owner, name, other) in zip(functions, replacements, strict=True):
            setattr(owner, name, other(function))
        yield
    finally:
        for function, (owner, name, _) in zip(functions, replacements, strict=True):
            setattr(owner, name, function)


def _take(original):
    def take(x, indices, axis=None):
        if isinstance(indices, tf.SparseTensor | tf.RaggedTensor):
            return original(x, indices, axis)
        x, indices = backend.convert_to_tensor(x), backend.convert_to_tensor(indices)
        return tf.gather(tf.reshape(x, [-1]) if axis is None else x, indices, axis=axis or 0)

    return take


def _first_at(search):
    def first_at(x, axis=None, keepdims=False):
        x = backend.convert_to_tensor(x)
        index = search(tf.reshape(x, [-1]) if axis is None else x, axis, output_type="int32")
        return backend.numpy._keepdims(x, index, axis) if keepdims else index

    return first_at


def _separable_conv2d(
    inputs, depthwise_kernel, pointwise_kernel, strides, padding, data_format, dilations
):
    options = {"padding": padding, "data_format": data_format}
    channels = tf.nn.depthwise_conv2d(
        inputs, depthwise_kernel, strides, dilations=dilations, **options
    )
    return tf.nn.conv2d(channels, pointwise_kernel, 1, **options)


def _next_seed(generator, ordered=True):
    return generator.state.value


def _without_xla(original):
    def call(function, *args, **kwargs):
        if function._jit_compile:
            function = tf.function(function.python_function)
        return original(function, *args, **kwargs)

    return call


def _call_on_rows(layer, inputs, training=None, mask=None):
    """Return (B, T, ...) through the layer of a `TimeDistributed` as (B T, ...)."""
    batch, length = ops.shape(inputs)[:2]
    options = {}
    if layer.layer._call_has_mask_arg and mask is not None:
        options["mask"] = _rows(mask)
    if layer.layer._call_has_training_arg:
        options["training"] = training
    outputs = layer.layer.call(_rows(inputs), **options)
    return ops.reshape(outputs, (batch, length, *ops.shape(outputs)[1:]))


def _rows(x):
    return ops.reshape(x, (-1, *ops.shape(x)[2:]))


def _layer_normalization(original):
    def layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=None, **options):
        axes = [axis] if isinstance(axis, int) else list(axis)
        whole = all(value is not None for value in (gamma, beta, epsilon))
        last = axes in ([-1], [len(x.shape) - 1])
        if not whole or not last or x.dtype != "float32" or options.get("rms_scaling"):
            return original(x, gamma, beta, axis, epsilon, **options)
        return composites.layer_norm(x, gamma, beta, epsilon=float(epsilon))

    return layer_normalization


def _gelu(original):
    def gelu(x, approximate=True):
        if getattr(x, "dtype", None) != "float32":
            return original(x, approximate)
        return composites.gelu(x, approximate=bool(approximate))

    return gelu


def _gru(
    sequence,
    initial_state,
    mask,
    kernel,
    recurrent_kernel,
    bias,
    activation,
    recurrent_activation,
    return_sequences=False,
    go_backwards=False,
    unroll=False,
    reset_after=True,
):
    """Refuse like a backend without `gru`: NotImplementedError makes Keras use its own loop."""
    usual = keras.activations.tanh, keras.activations.sigmoid
    if (
        mask is not None
        or bias is None
        or (activation, recurrent_activation) != usual
        or not reset_after
        or sequence.dtype != "float32"
    ):
        raise NotImplementedError
    weights = [kernel, recurrent_kernel, bias]
    outputs, last = gru(sequence, None, [initial_state], weights, reverse=go_backwards)
    if not return_sequences:
        outputs = last[:, None]
    elif go_backwards:  # Keras returns outputs in the order of computation
        outputs = ops.flip(outputs, axis=1)
    return last, outputs, [last]
