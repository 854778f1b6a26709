"""Outputs and gradients of layers and models, held against something independent.

Arrays of `tests.vectors`, stored or made anew, hold the gradients too. On TensorFlow a layer
computes in float64 here, on the other backends in float32, as Keras wants it.
"""

import contextlib
import math
import types
from unittest import mock

import keras
import numpy as np
from keras import ops, tree

from seqkeras.attention import MultiHeadAttention
from tests.arrays import BACKEND, numbers
from tests.autodiff import outputs_and_gradients
from tests.conftest import others_long

DOUBLE = BACKEND == "tensorflow"
TOLERANCES = {"float32": 1e-5, "float64": 1e-9}
PRECISIONS = ["float64", "float32"] if DOUBLE else ["float32"]  # `make test` holds the first
DTYPES = others_long(PRECISIONS)


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
            return ops.sum(ops.multiply(arrays["factors"], outputs)), outputs

        outputs, actual = outputs_and_gradients(layer, loss, inputs)
    expected = [arrays[f"gradient/{name}"] for name in (*range(len(weights)), *names)]
    assert difference(outputs, arrays["outputs"]) < TOLERANCES[dtype]
    assert difference(actual, expected) < TOLERANCES[dtype]


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

        def loss(values):
            outputs = call(layer, arrays | dict(zip(inputs, values, strict=True)))
            outputs = outputs if isinstance(outputs, dict) else {"outputs": outputs}
            return sum(
                ops.sum(ops.multiply(arrays[f"factor/{name}"], output))
                for name, output in outputs.items()
            ), outputs

        outputs, gradients = outputs_and_gradients(layer, loss, [arrays[name] for name in inputs])
        count = len(layer.trainable_weights)
    for name, output in outputs.items():
        assert difference(output, arrays[name]) < TOLERANCES[dtype], name
    flat = np.concatenate([np.ravel(gradient) for gradient in gradients[:count]])
    expected = [arrays["gradients"], *(arrays[f"gradient/{name}"] for name in inputs)]
    assert difference([flat, *gradients[count:]], expected) < TOLERANCES[dtype]


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
