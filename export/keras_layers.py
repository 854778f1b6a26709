"""Trace Keras's own layers as composites of seqkeras that compute the same.

Otherwise LayerNormalization becomes thirteen nodes, an approximated GELU nine, and a GRU a loop
over its steps (tf2onnx itself recognises an LSTM without a mask). Keras's own code stays for what
the composites lack: masks with gaps, other activations, missing weights.

A `SeedGenerator` does not change its state. Keras's recurrent layers draw dropout masks even
outside of training; no output needs them, but drawing would make the graph write to a variable.

A function that XLA is to compile, as Keras's grouped convolutions are, becomes part of the graph.
"""

import contextlib

import keras
import tensorflow as tf
from keras.src import backend, ops  # Keras's layers call these names; composites the public

from seqkeras import composites
from seqkeras.recurrent.gru import gru

Function = type(tf.function(lambda: None))


@contextlib.contextmanager
def as_composites():
    """Let Keras's layers call the composites in this context."""
    seeds = keras.random.SeedGenerator
    own = [(ops, "layer_normalization"), (ops, "gelu"), (backend, "gru"), (seeds, "next")]
    own.append((Function, "__call__"))
    own = [(owner, name, getattr(owner, name)) for owner, name in own]
    try:
        ops.layer_normalization = _layer_normalization(ops.layer_normalization)
        ops.gelu = _gelu(ops.gelu)
        backend.gru = _gru
        seeds.next = _next_seed
        Function.__call__ = _without_xla(Function.__call__)
        with steps_as_rows():
            yield
    finally:
        for owner, name, function in own:
            setattr(owner, name, function)


@contextlib.contextmanager
def steps_as_rows():
    """Let a `TimeDistributed` apply its layer once, to all steps as rows, in this context.

    Keras's own code (3.15) maps over as many steps as the batch has rows if both sizes are open.
    """
    own = keras.layers.TimeDistributed.call
    try:
        keras.layers.TimeDistributed.call = _call_on_rows
        yield
    finally:
        keras.layers.TimeDistributed.call = own


def _next_seed(generator, ordered=True):
    return generator.state.value


def _without_xla(own):
    def call(function, *args, **kwargs):
        if function._jit_compile:
            function = tf.function(function.python_function)
        return own(function, *args, **kwargs)

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


def _layer_normalization(own):
    def layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=None, **options):
        axes = [axis] if isinstance(axis, int) else list(axis)
        whole = all(value is not None for value in (gamma, beta, epsilon))
        last = axes in ([-1], [len(x.shape) - 1])
        if not whole or not last or x.dtype != "float32" or options.get("rms_scaling"):
            return own(x, gamma, beta, axis, epsilon, **options)
        return composites.layer_norm(x, gamma, beta, epsilon=float(epsilon))

    return layer_normalization


def _gelu(own):
    def gelu(x, approximate=True):
        if getattr(x, "dtype", None) != "float32":
            return own(x, approximate)
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
