import keras
import numpy as np
from keras import ops, tree

from tests.arrays import close, numbers
from tests.autodiff import outputs_and_gradients
from tests.catalogue import call, options_long
from tests.properties.test_padding import PADDED, cut, in_numbers


def told(case):
    """Whether the layer is told what is padding: an attention mask tells it of keys alone."""
    inputs = case.inputs()
    if "attention_mask" in inputs:
        return "key" in inputs
    return "lengths" in inputs or any(inputs[name].dtype == bool for name in case.lengths)


@options_long([case for case in PADDED if in_numbers(case) and told(case)])
def test_padding_that_is_no_number_has_no_gradient(case):
    layer, inputs = case.built(), case.inputs()
    padded = case.padded(inputs, steps=2, number=np.nan)
    names = [name for name in case.lengths if inputs[name].dtype.kind == "f"]
    like = numbers(call(layer, inputs))

    def gradients_of(given):
        def loss(values):
            outputs = call(layer, given | dict(zip(names, values, strict=True)))
            return sum(
                ops.mean(ops.sin(output))
                for output in tree.flatten(tree.map_structure(cut, outputs, like))
                if "float" in keras.backend.standardize_dtype(output.dtype)
            ), ()

        _, gradients = outputs_and_gradients(layer, loss, [given[name] for name in names])
        weights = len(layer.trainable_weights)
        return gradients[:weights], gradients[weights:]

    (by_weights, by_inputs), (expected, expected_by_inputs) = map(gradients_of, (padded, inputs))
    close(by_weights, expected)
    for actual, other in zip(by_inputs, expected_by_inputs, strict=True):
        close(cut(actual, other), other)
        assert np.sum(actual != 0) == np.sum(other != 0)
