import numpy as np
import pytest
from keras import ops, tree

from tests.arrays import gradients
from tests.catalogue import CASES, call, options_long


@options_long(CASES)
def test_every_weight_has_a_gradient_and_it_is_finite(case):
    layer, inputs = case.built(), case.inputs()
    if not layer.trainable_weights:
        pytest.skip("has no weights")

    def loss(layer):
        outputs = [each for each in tree.flatten(call(layer, inputs)) if "float" in str(each.dtype)]
        return sum(ops.mean(ops.sin(each)) for each in outputs)

    for weight, gradient in zip(layer.trainable_weights, gradients(layer, loss), strict=True):
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(gradient != 0), weight.path
