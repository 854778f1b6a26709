import keras
import numpy as np
import pytest

from seqkeras.attention import KeyValueAttention, KeyValuePredictAttention
from tests import references
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.complex_step import assert_is_the_formula

LAYERS = {"key_value": (KeyValueAttention, 2), "key_value_predict": (KeyValuePredictAttention, 3)}
every_layer = pytest.mark.parametrize("name", LAYERS)
WINDOW, LENGTH, UNITS = 3, 7, 5


def case(name):
    layer_class, num_parts = LAYERS[name]

    def reference(weights, sequence, mask=None):
        key, query, scale, context, predict = weights
        return references.key_value_attention(
            sequence, WINDOW, num_parts, (key, query, scale, context, predict), mask
        )

    sequence = floats(2, LENGTH, num_parts * UNITS)
    inputs = {"sequence": sequence, "mask": right_padded([7, 4], LENGTH)}
    return lambda: layer_class(WINDOW), inputs, reference


@every_layer
def test_attention_to_the_past_is_the_papers_formula(name):
    make, inputs, reference = case(name)
    holes = np.array([[1, 0, 0, 0, 1, 1, 0], [0, 1, 1, 0, 1, 0, 1]], bool)
    for mask in ({}, {"mask": inputs["mask"]}, {"mask": holes}):
        assert_is_the_formula(make, {"sequence": inputs["sequence"], **mask}, reference)


@every_layer
def test_one_step_at_a_time_is_all_at_once(name):
    make, inputs, _ = case(name)
    layer, sequence = make(), inputs["sequence"]
    layer(sequence)
    randomize(layer)
    expected = layer(sequence)
    state = layer.initial_state(2)
    for t in range(LENGTH):
        step, state = layer.step(sequence[:, t], state)
        close(step, [each[:, t] for each in expected])
        assert {name: each.shape[:2] for name, each in state.items()} == dict.fromkeys(
            ("keys", "values", "real"), (2, WINDOW)
        )


def test_the_mask_of_an_embedding_comes_through():
    token_ids = np.array([[3, 4, 0], [5, 0, 0]])
    embedded = keras.layers.Embedding(7, 6, mask_zero=True)(token_ids)
    output, _ = KeyValueAttention(2)(embedded)
    assert np.all(numbers(output)[token_ids == 0] == 0)
    np.testing.assert_array_equal(output._keras_mask, token_ids != 0)
