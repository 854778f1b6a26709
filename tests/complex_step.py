"""Layers and models held against loops of `tests.references`, whose derivatives are exact.

    sum over w of df/dw d_w = Im f(w + i h d) / h

No difference is taken, so that h may be so small that its square is nothing (Squire and Trapp
1998, https://doi.org/10.1137/S003614459631241X). ReLU and the largest of several numbers have a
kink: the derivative is that of the branch that their real parts take, as it is in back-propagation.
"""

import contextlib

import keras
import numpy as np
from keras import ops, tree

from tests.agreement import DOUBLE, TOLERANCES, difference, in_double
from tests.arrays import floats, numbers, randomize
from tests.autodiff import outputs_and_gradients

STEP = 1e-30


def as_float64(weights):
    """A structure of weights as one of arrays."""
    return tree.map_structure(lambda each: numbers(each).astype("float64"), weights)


def call_plainly(layer, inputs):
    """As models take their inputs, or as layers do."""
    return layer(inputs) if isinstance(layer, keras.Model) else layer(**inputs)


def assert_equals_loops(make, dtype, inputs, weights_of, reference, call=call_plainly):
    """Outputs are the reference's, and gradients by every weight and floating-point input.

    The gradients are those of a random sum of all outputs, each taken along one random direction.

    Args:
        make: () -> the layer with random weights.
        dtype: "float32" or "float64"; the tolerance is that of `tests.agreement`, for outputs of
            each tensor by itself, for gradients of all tensors together.
        inputs: arrays by name.
        weights_of: layer -> its weights, in lists and dictionaries as the reference reads them.
        reference: (layer, arrays of those weights, inputs) -> what `call` gives. It asks the layer
            for its arguments and nothing else, and takes complex numbers.
        call: (layer, inputs) -> a tensor, or a list or dictionary of them.
    """
    with in_double() if dtype == "float64" else contextlib.nullcontext():
        layer = make()
        outputs, gradients = _outputs_and_gradients(layer, dtype, inputs, call)
    named = weights_of(layer)
    weights, inputs = as_float64(named), inputs | as_float64(_floating(inputs))
    expected = tree.flatten(reference(layer, weights, inputs))
    for one, other in zip(outputs, expected, strict=True):
        assert difference(one, np.real(other)) < TOLERANCES[dtype]

    def slope(weights, inputs):
        return _random_sum(tree.flatten(reference(layer, weights, inputs)), np).imag / STEP

    slopes = []
    for weight in layer.trainable_weights:
        assert any(each is weight for each in tree.flatten(named)), weight.path
        slopes.append(slope(_moved(named, weights, weight), inputs))
        assert slopes[-1] != 0 or weight.name == "key_bias"  # which a softmax does not see
    for name, each in _floating(inputs).items():
        slopes.append(slope(weights, inputs | {name: each + 1j * STEP * _direction(each)}))
        assert slopes[-1] != 0
    along = [np.sum(each * _direction(each)) for each in gradients]
    assert difference(along, slopes) < TOLERANCES[dtype]


def assert_is_the_formula(make, inputs, reference):
    """`layer(**inputs)` and its gradients are those of `reference(weights, **inputs)`.

    Args:
        make: () -> the layer, not built.
        reference: takes the layer's weights as a list.
    """

    def built():
        layer = make()
        layer(**inputs)
        return randomize(layer)

    for dtype in TOLERANCES if DOUBLE else ["float32"]:
        assert_equals_loops(
            built,
            dtype,
            inputs,
            lambda layer: layer.weights,
            lambda layer, weights, inputs: reference(weights, **inputs),
        )


def _outputs_and_gradients(layer, dtype, inputs, call):
    inputs = {
        name: each.astype(dtype) if each.dtype.kind == "f" else each
        for name, each in inputs.items()
    }
    floating = _floating(inputs)

    def function(values):
        outputs = tree.flatten(call(layer, inputs | dict(zip(floating, values, strict=True))))
        return _random_sum(outputs, ops, dtype), outputs

    return outputs_and_gradients(layer, function, list(floating.values()))


def _random_sum(outputs, library, dtype="float64"):
    factors = [floats(*each.shape, seed=place) for place, each in enumerate(outputs)]
    pairs = zip(factors, outputs, strict=True)
    return sum(library.sum(library.multiply(factor.astype(dtype), each)) for factor, each in pairs)


def _direction(like):
    return floats(*like.shape, seed=17).astype("float64")


def _floating(inputs):
    return {name: each for name, each in inputs.items() if each.dtype.kind == "f"}


def _moved(named, weights, weight):
    """Those weights, one of them moved by a complex step."""
    step = 1j * STEP * _direction(weight)
    return tree.map_structure(
        lambda own, each: each + step if own is weight else each, named, weights
    )
