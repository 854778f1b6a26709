"""Layers and models held against arrays of `tests.vectors.transformer`, stored or made anew."""

import contextlib
import math
import types
from unittest import mock

import keras
import numpy as np
from keras import ops

from tests.arrays import gradients
from tests.autodiff import gradients_of
from tests.seqkeras.attention.agreement import DOUBLE, difference, in_double

TOLERANCES = {"float32": 1e-5, "float64": 1e-9}
DTYPES = ["float32", "float64"] if DOUBLE else ["float32"]


def arrays_of(arrays, case, dtype):
    """Those of one case and dtype, by their names."""
    start = f"{case}/{dtype}/"
    return {
        name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)
    }


def assert_agrees(make, arrays, dtype, call, inputs=()):
    """Outputs and gradients are those of the arrays: by `inputs`, named, and by every weight.

    Args:
        make: () -> the layer.
        arrays: of one case, see `tests.vectors.transformer`.
        dtype: of the arrays.
        call: (layer, arrays) -> a tensor, "outputs" of the arrays, or a dictionary of them.
        inputs: the names of arrays by which there are gradients too.
    """
    with in_double() if dtype == "float64" else contextlib.nullcontext():
        layer = make()
        call(layer, arrays)
        set_flat(layer, arrays["weights"])
        outputs = call(layer, arrays)
        outputs = outputs if isinstance(outputs, dict) else {"outputs": outputs}
        for name, each in outputs.items():
            assert difference(each, arrays[name]) < TOLERANCES[dtype], name

        def loss(outputs):
            outputs = outputs if isinstance(outputs, dict) else {"outputs": outputs}
            return sum(
                ops.sum(ops.multiply(arrays[f"factor/{name}"], each))
                for name, each in outputs.items()
            )

        by_weights = gradients(layer, lambda each: loss(call(each, arrays)))
        by_inputs = (
            gradients_of(
                lambda values: loss(call(layer, arrays | dict(zip(inputs, values, strict=True)))),
                [arrays[name] for name in inputs],
            )
            if inputs
            else []
        )
    flat = np.concatenate([np.ravel(each) for each in by_weights])
    expected = [arrays["gradients"], *(arrays[f"gradient/{name}"] for name in inputs)]
    assert difference([flat, *by_inputs], expected) < TOLERANCES[dtype]


def set_flat(layer, flat):
    """Give a layer the weights that lie end to end in one array."""
    sizes = [int(np.prod(weight.shape)) for weight in layer.weights]
    assert sum(sizes) == flat.size
    pieces = np.split(flat, np.cumsum(sizes)[:-1])
    layer.set_weights(
        [piece.reshape(weight.shape) for piece, weight in zip(pieces, layer.weights, strict=True)]
    )


def weights_of(layer):
    """The weights of a block, or of any layer, as `tests.references.transformer` names them."""
    names = ["attention", "feed_forward", "attention_norm", "feed_forward_norm"]
    weights = {
        name: [each.astype("float64") for each in getattr(layer, name).get_weights()]
        for name in names
    }
    if getattr(layer, "cross_attention", None) is not None:
        for name in ("cross_attention", "cross_norm"):
            weights[name] = [each.astype("float64") for each in getattr(layer, name).get_weights()]
    return weights


def count_parameters(model):
    """How many numbers a model's weights would be: they are asked for, and none is made."""
    sizes = []

    def add_weight(self, shape=None, **options):
        sizes.append(math.prod(shape))
        return types.SimpleNamespace(shape=shape)

    with mock.patch.object(keras.layers.Layer, "add_weight", add_weight):
        model.build(None)
    return sum(sizes)
