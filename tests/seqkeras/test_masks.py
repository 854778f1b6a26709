import numpy as np
import pytest
from keras import ops

from seqkeras.masks import (
    attended,
    causal_mask,
    combine_masks,
    mask_scores,
    masked_softmax,
    padding_mask,
    permutation_mask,
    prefix_mask,
    window_mask,
)
from tests import references
from tests.arrays import close, floats, numbers
from tests.autodiff import gradients_of
from tests.refusals import refusals


def table(target_length, source_length, may_attend):
    """(1, T, S) mask of a rule, pair by pair."""
    rows = [[may_attend(t, s) for s in range(source_length)] for t in range(target_length)]
    return np.array([rows], bool).reshape(1, target_length, source_length)


def test_a_padding_mask_is_true_for_real_steps():
    mask = numbers(padding_mask(np.array([3, 0, 5]), 5))
    np.testing.assert_array_equal(mask, np.array([[1, 1, 1, 0, 0], [0] * 5, [1] * 5], bool))


def test_a_causal_mask_lets_a_query_see_itself_and_what_is_before():
    np.testing.assert_array_equal(causal_mask(5), table(5, 5, lambda t, s: s <= t))


def test_beside_a_cache_the_last_query_is_at_the_last_key():
    np.testing.assert_array_equal(causal_mask(2, 5), table(2, 5, lambda t, s: s <= t + 3))
    expected = table(2, 5, lambda t, s: t + 3 - 1 <= s <= t + 3)
    np.testing.assert_array_equal(window_mask(2, 1, 0, source_length=5), expected)


@pytest.mark.parametrize("before, after", [(2, 1), (0, 0), (0, 3), (9, 0)])
def test_a_window_mask_lets_a_query_see_its_neighbours(before, after):
    expected = table(7, 7, lambda t, s: t - before <= s <= t + after)
    np.testing.assert_array_equal(window_mask(7, before, after), expected)


def test_a_prefix_mask_looks_both_ways_within_the_prefix_only():
    lengths = np.array([0, 2, 5])
    mask = numbers(prefix_mask(lengths, 5))
    assert mask.shape == (3, 5, 5)
    for row, prefix in enumerate(lengths):
        expected = table(5, 5, lambda t, s, prefix=prefix: s <= t or s < prefix)
        np.testing.assert_array_equal(mask[row : row + 1], expected)


@pytest.mark.parametrize("stream", ["content", "query"])
def test_a_permutation_mask_lets_a_position_see_what_comes_earlier_in_the_order(stream):
    orders = np.array([[2, 0, 3, 1], [0, 1, 2, 3]], "int32")
    mask = numbers(permutation_mask(orders, stream))
    for row, order in enumerate(orders.tolist()):
        for place, position in enumerate(order):
            seen = order[: place + 1] if stream == "content" else order[:place]
            assert set(np.flatnonzero(mask[row, position])) == set(seen)
    np.testing.assert_array_equal(permutation_mask(orders[0], stream), mask[:1])


def test_combined_masks_allow_what_each_allows():
    padding, window = np.array([[[1, 1, 0]], [[1, 0, 0]]], bool), window_mask(3, 1, 0)
    combined = numbers(combine_masks(padding, None, window))
    np.testing.assert_array_equal(combined, padding & numbers(window))
    assert combined.shape == (2, 3, 3)
    np.testing.assert_array_equal(combine_masks(None, padding), padding)
    assert combine_masks(None, None) is None


@pytest.mark.parametrize("axes", [(2,), (1, 2)], ids=str)
def test_a_key_is_attended_to_if_any_query_of_any_head_may(axes):
    mask = floats(3, *axes, 7, seed=5) > 0.7
    expected = [[mask[row, ..., s].any() for s in range(7)] for row in range(3)]
    np.testing.assert_array_equal(numbers(attended(mask)), expected)
    assert 0 < np.sum(expected) < 21
    assert attended(None) is None


def test_a_masked_softmax_is_a_softmax_of_what_is_left():
    scores, mask = 3 * floats(2, 3, 5), floats(2, 3, 5, seed=1) > -0.5
    mask[1, 2] = False
    _, expected = references.attention(scores.astype("float64"), np.zeros((2, 5, 1)), mask)
    close(masked_softmax(scores, mask), expected)
    close(masked_softmax(scores), references.attention(scores, np.zeros((2, 5, 1)))[1])


def test_a_single_position_has_the_weight_one_and_no_warning():
    scores, mask = floats(3, 2, 1), np.array([[[True]], [[False]], [[True]]])
    np.testing.assert_array_equal(masked_softmax(scores), np.ones((3, 2, 1)))
    np.testing.assert_array_equal(masked_softmax(scores, mask), mask * np.ones((3, 2, 1)))


@pytest.mark.parametrize("dtype, size", [("float16", 1e4), ("bfloat16", 1e8), ("float32", 1e20)])
def test_large_scores_leave_masked_positions_at_zero(dtype, size):
    scores = ops.cast(np.array([[-size, -size, size]]), dtype)
    weights = ops.cast(masked_softmax(scores, np.array([[True, True, False]])), "float32")
    np.testing.assert_array_equal(numbers(weights), [[0.5, 0.5, 0]])


@pytest.mark.parametrize(
    "dtype, size", [("float16", 1e21), ("bfloat16", np.inf), ("float32", np.inf)]
)
def test_an_infinite_score_becomes_finite_in_float16_alone(dtype, size):
    scores = mask_scores(ops.cast(np.array([np.inf, -np.inf, 1.0], "float32"), dtype))
    np.testing.assert_allclose(numbers(scores), [size, -size, 1], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_fully_masked_row_has_no_weights_and_no_gradients(dtype):
    mask = np.array([[True, True, False], [False, False, False]])

    def loss(values):
        weights = masked_softmax(ops.cast(values[0], dtype), mask)
        return ops.sum(ops.multiply(np.array([1.0, 2.0, 3.0], "float32"), weights))

    scores = np.array([[1.0, 2.0, 3.0], [3e4, -3e4, 0.0]], "float32")
    [gradient] = gradients_of(loss, [scores])
    assert np.all(np.isfinite(gradient))
    assert np.all(gradient[0, :2] != 0) and np.all(gradient[~mask] == 0)


ORDER = "permutation_mask: order must hold every position from 0 to 2 once in each row; rec... "
test_masks_that_make_no_sense_are_refused = refusals(
    (
        lambda: combine_masks(np.ones((3, 3), bool), causal_mask(3)),
        "combine_masks: masks must have the same rank; received (3, 3), (1, 3, 3).",
    ),
    (lambda: window_mask(3, -1, 2), "window_mask: before and after must ...-1 and 2."),
    (lambda: permutation_mask(np.arange(3), "both"), "permutation_mask: stream must be ...'both'."),
    (lambda: permutation_mask(np.array([[2, 0, 1], [0, 2, 2]])), f"{ORDER}[[2, 0, 1], [0, 2, 2]]"),
    (lambda: permutation_mask(np.array([1, 2, 3])), f"{ORDER}[[1, 2, 3]]"),
    (lambda: permutation_mask(np.array([0, -1, 1])), f"{ORDER}[[0, -1, 1]]"),
)
