import keras
import numpy as np
import pytest
from keras import tree

from tests.arrays import close, numbers
from tests.catalogue import CASES, call


@pytest.fixture(params=["mixed_float16", "mixed_bfloat16"])
def policy(request):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)


def scaled(inputs, factor):
    def scale(each):
        return factor * each if each.dtype == "float32" else each

    return tree.map_structure(scale, inputs)


def as_float32(outputs):
    return tree.map_structure(lambda each: keras.ops.cast(each, "float32"), outputs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_half_precision_stays_near_and_finite(case, policy):
    layer, inputs = case.build(), case.inputs()
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    small = as_float32(call(layer, inputs))
    large = numbers(as_float32(call(layer, scaled(inputs, 1e3))))
    assert all(np.all(np.isfinite(each)) for each in tree.flatten(large))
    keras.config.set_dtype_policy("float32")
    close(small, call(case.build(), inputs), rtol=0.05, atol=0.1)
