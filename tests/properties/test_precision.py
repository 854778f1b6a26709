import keras
import numpy as np
import pytest
from keras import tree

from tests.arrays import BACKEND, close, numbers
from tests.catalogue import CASES, call, options_long

# `tests/seqkeras/composites` holds what half precision endangers: softmax, masks, norms.
pytestmark = pytest.mark.long


@pytest.fixture(params=["mixed_float16", "mixed_bfloat16"])
def policy(request, restored):
    keras.config.set_dtype_policy(request.param)
    return request.param


def scaled(inputs, factor):
    def scale(each):
        return factor * each if each.dtype == "float32" else each

    return tree.map_structure(scale, inputs)


def as_float32(outputs):
    return tree.map_structure(lambda each: keras.ops.cast(each, "float32"), outputs)


@options_long(CASES)
def test_half_precision_stays_near_and_finite(case, policy):
    layer, inputs = case.built(), case.inputs()
    assert {weight.dtype for weight in layer.weights} <= {"float32"}
    small = as_float32(call(layer, inputs))
    large = numbers(as_float32(call(layer, scaled(inputs, case.scale))))
    assert all(np.all(np.isfinite(each)) for each in tree.flatten(large))
    keras.config.set_dtype_policy("float32")
    expected = numbers(call(case.built(), inputs))
    for each, other in zip(tree.flatten(numbers(small)), tree.flatten(expected), strict=True):
        told = np.abs(other) < 1e8  # not the logits of what may not be
        assert np.array_equal(told, np.abs(each) < 1e8)
        assert np.max(np.abs(each - other)[told]) < 0.05 * np.max(np.abs(other[told])) + 1e-3


@pytest.mark.skipif(BACKEND != "tensorflow", reason="elsewhere Keras rounds float64 to float32")
@options_long(CASES)
def test_float64_is_kept_from_the_inputs_to_the_outputs(case, restored):
    expected = call(case.built(), case.inputs())
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    inputs = tree.map_structure(
        lambda each: each.astype("float64") if each.dtype == "float32" else each, case.inputs()
    )
    actual = call(case.built(), inputs)
    close(actual, expected, rtol=1e-4, atol=1e-5)
    for each, single in zip(tree.flatten(actual), tree.flatten(expected), strict=True):
        if "float" in str(single.dtype):
            assert "float64" in str(each.dtype)
