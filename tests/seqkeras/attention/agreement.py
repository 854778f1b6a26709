"""Outputs and gradients of a layer, held against a float64 reference that knows no gradient.

The reference is differentiated along random directions by differences of fourth order. On
TensorFlow the layer computes in float64 here, on the other backends in float32, as Keras wants it.
"""

import contextlib

import keras
import numpy as np
from keras import ops, tree

from seqkeras.attention import MultiHeadAttention
from tests.arrays import BACKEND, floats, gradients, numbers, randomize
from tests.autodiff import gradients_of

DOUBLE = BACKEND == "tensorflow"
STEP = 2e-4


@contextlib.contextmanager
def in_double():
    """Layers of this context compute in float64, where Keras can."""
    before = keras.config.dtype_policy(), keras.config.floatx()
    if DOUBLE:
        keras.config.set_floatx("float64")
        keras.config.set_dtype_policy("float64")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before[0])
        keras.config.set_floatx(before[1])


def difference(actual, expected):
    """The largest difference of tensors over the largest value of them all."""
    pairs = [
        (np.asarray(one, "float64"), np.asarray(other, "float64"))
        for one, other in zip(
            tree.flatten(numbers(actual)), tree.flatten(numbers(expected)), strict=True
        )
    ]
    assert all(one.shape == other.shape for one, other in pairs)
    largest = max(np.max(np.abs(other)) for _, other in pairs)
    return max(np.max(np.abs(one - other)) for one, other in pairs) / largest


def assert_outputs_agree(make, inputs, reference):
    """`layer(**inputs)` is `reference(weights, **inputs)`, in float32 and in float64."""
    layer = make()
    layer(**inputs)
    randomize(layer)
    expected = reference([each.astype("float64") for each in layer.get_weights()], **inputs)
    assert difference(layer(**inputs), expected) < 1e-5
    if not DOUBLE:
        return
    with in_double():
        layer, doubles = _built(make, inputs)
        expected = reference(layer.get_weights(), **doubles)
        assert difference(layer(**doubles), expected) < 1e-9


def assert_gradients_agree(make, inputs, reference):
    """So are the gradients by all floating-point inputs and all weights."""
    with in_double():
        layer, inputs = _built(make, inputs)
        names = [name for name, each in inputs.items() if each.dtype.kind == "f"]
        outputs = tree.flatten(numbers(layer(**inputs)))
        factors = [
            floats(*each.shape, seed=7 + place).astype(each.dtype)
            for place, each in enumerate(outputs)
        ]

        def loss(outputs):
            pairs = zip(factors, tree.flatten(outputs), strict=True)
            return sum(ops.sum(ops.multiply(factor, each)) for factor, each in pairs)

        by_inputs = gradients_of(
            lambda values: loss(layer(**inputs | dict(zip(names, values, strict=True)))),
            [inputs[name] for name in names],
        )
        by_weights = []
        if layer.trainable_weights:
            by_weights = gradients(layer, lambda each: loss(each(**inputs)))
        weights = layer.get_weights()

    def expected_loss(values):
        given = inputs | dict(zip(names, values[: len(names)], strict=True))
        outputs = tree.flatten(reference(values[len(names) :], **given))
        return sum(np.sum(factor * each) for factor, each in zip(factors, outputs, strict=True))

    values = [np.asarray(each, "float64") for each in (*(inputs[name] for name in names), *weights)]
    actual = [*by_inputs, *by_weights]
    errors, sizes = [], []
    for place, gradient in enumerate(actual):
        direction = floats(*gradient.shape, seed=17).astype("float64")
        expected = _derivative(expected_loss, values, place, direction)
        errors.append(abs(np.sum(gradient * direction) - expected))
        sizes.append(abs(expected))
    assert max(sizes) > 0
    assert max(errors) / max(sizes) < (1e-9 if DOUBLE else 1e-5), errors


def assert_equals_torch(arrays, causal, dtype):
    """Our multi-head attention gives the outputs and gradients of `tests.vectors.attention`."""
    weights = [each for name, each in arrays.items() if name.startswith("weight/")]
    names = ["query", "key", "value"]
    inputs, mask = [arrays[name] for name in names], arrays.get("attention_mask")
    with in_double():
        num_heads, head_dim = weights[0].shape[1:]
        layer = MultiHeadAttention(num_heads, head_dim, causal=causal, dtype=dtype)
        layer(*inputs)
        layer.set_weights(weights)

        def loss(values):
            outputs = layer(*values, attention_mask=mask)
            return ops.sum(ops.multiply(arrays["factors"], outputs))

        actual = [*gradients_of(loss, inputs), *gradients(layer, lambda _: loss(inputs))]
        outputs = layer(*inputs, attention_mask=mask)
    expected = [arrays[f"gradient/{name}"] for name in (*names, *range(len(weights)))]
    tolerance = 1e-9 if dtype == "float64" else 1e-5
    assert difference(outputs, arrays["outputs"]) < tolerance
    assert difference(actual, expected) < tolerance


def _built(make, inputs):
    if DOUBLE:
        inputs = {
            name: each.astype("float64") if each.dtype.kind == "f" else each
            for name, each in inputs.items()
        }
    layer = make()
    layer(**inputs)
    return randomize(layer), inputs


def _derivative(function, values, place, direction):
    def at(step):
        moved = list(values)
        moved[place] = moved[place] + step * direction
        return function(moved)

    h = STEP
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
