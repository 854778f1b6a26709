import keras
import numpy as np
import pytest

from seqkeras.attention import (
    KeyValueAttention,
    KeyValuePredictAttention,
    RestrictedSelfAttention,
)
from tests import references
from tests.agreement import assert_gradients_agree, assert_outputs_agree
from tests.arrays import close, floats, numbers, randomize, right_padded

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
    assert_outputs_agree(make, inputs, reference)
    assert_outputs_agree(make, {"sequence": inputs["sequence"]}, reference)


@every_layer
def test_the_gradients_of_attention_to_the_past_are_right(name):
    assert_gradients_agree(*case(name))


@every_layer
def test_masked_steps_are_not_attended_to_wherever_they_are(name):
    make, inputs, reference = case(name)
    inputs["mask"] = np.array([[1, 0, 0, 0, 1, 1, 0], [0, 1, 1, 0, 1, 0, 1]], bool)
    assert_outputs_agree(make, inputs, reference)


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


@every_layer
def test_the_first_step_has_nothing_to_attend_to(name):
    make, inputs, _ = case(name)
    _, weights = numbers(make()(inputs["sequence"]))
    sums = weights.sum(axis=-1)
    assert np.all(sums[:, 0] == 0)
    close(sums[:, 1:], np.ones_like(sums[:, 1:]))
    assert np.all(weights[:, 1, :-1] == 0)


def test_the_mask_of_an_embedding_comes_through():
    token_ids = np.array([[3, 4, 0], [5, 0, 0]])
    embedded = keras.layers.Embedding(7, 6, mask_zero=True)(token_ids)
    output, _ = KeyValueAttention(2)(embedded)
    assert np.all(numbers(output)[token_ids == 0] == 0)
    np.testing.assert_array_equal(output._keras_mask, token_ids != 0)


@pytest.mark.parametrize(
    "layer_class, dim", [(KeyValueAttention, 7), (KeyValuePredictAttention, 8)]
)
def test_parts_that_do_not_divide_the_dim_are_refused(layer_class, dim):
    message = (
        rf"^{layer_class.__name__}: the dim of sequence must be a multiple of \d; received \d\.$"
    )
    with pytest.raises(ValueError, match=message):
        layer_class(2)(floats(2, 3, dim))


@pytest.mark.parametrize("window", [0, 1.5, True])
def test_a_window_that_is_no_positive_integer_is_refused(window):
    message = rf"^KeyValueAttention: window must be a positive integer; received {window}\.$"
    with pytest.raises(ValueError, match=message):
        KeyValueAttention(window)


@pytest.mark.parametrize(
    "make",
    [lambda: KeyValueAttention(2), lambda: RestrictedSelfAttention(2, 3, window=2)],
    ids=["KeyValueAttention", "RestrictedSelfAttention"],
)
def test_a_mask_that_would_broadcast_is_refused(make):
    layer = make()
    message = (
        rf"{type(layer).__name__}: mask must have the shape \(batch, length\) of the sequence, "
        r"\(2, 3\); received \(2, 1\)\."
    )
    with pytest.raises(ValueError, match=message):
        layer(floats(2, 3, 6), mask=np.ones((2, 1), bool))
