import numpy as np
import pytest
from keras import ops

from seqkeras.attention.masks import lengths_of, masked_softmax, padding_mask
from tests import references
from tests.arrays import close, floats, numbers


def test_a_padding_mask_is_true_for_real_steps():
    mask = numbers(padding_mask(np.array([3, 0, 5]), 5))
    np.testing.assert_array_equal(mask, np.array([[1, 1, 1, 0, 0], [0] * 5, [1] * 5], bool))


def test_lengths_are_read_back_from_a_padding_mask():
    lengths = np.array([0, 1, 5, 7], "int32")
    read = numbers(lengths_of(padding_mask(lengths, 7)))
    np.testing.assert_array_equal(read, lengths)
    assert read.dtype == "int32"


@pytest.mark.parametrize("row", [[0, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 1]], ids=str)
def test_a_row_that_is_not_right_padded_has_the_length_minus_one(row):
    mask = np.array([[1, 1, 0], row, [0, 0, 0]], bool)
    np.testing.assert_array_equal(numbers(lengths_of(mask)), [2, -1, 0])


def test_a_masked_softmax_is_a_softmax_of_what_is_left():
    scores, mask = 3 * floats(2, 3, 5), floats(2, 3, 5, seed=1) > -0.5
    mask[1, 2] = False
    _, expected = references.attention(scores.astype("float64"), np.zeros((2, 5, 1)), mask)
    close(masked_softmax(scores, mask), expected)
    close(masked_softmax(scores), references.attention(scores, np.zeros((2, 5, 1)))[1])


def test_a_mask_broadcasts_to_the_scores():
    scores, mask = floats(2, 3, 5), np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0]], bool)
    whole = np.broadcast_to(mask[:, None], scores.shape)
    close(masked_softmax(scores, mask[:, None]), masked_softmax(scores, whole))


@pytest.mark.parametrize("dtype, size", [("float16", 1e4), ("bfloat16", 1e8), ("float32", 1e8)])
def test_large_scores_leave_masked_positions_at_zero(dtype, size):
    scores = ops.cast(np.array([[-size, -size, size]]), dtype)
    weights = ops.cast(masked_softmax(scores, np.array([[True, True, False]])), "float32")
    np.testing.assert_array_equal(numbers(weights), [[0.5, 0.5, 0]])
