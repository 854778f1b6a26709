"""Batches of rows of different lengths, beside a loop over the rows."""

import itertools

import numpy as np
import pytest

from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.batching import BucketedBatches
from seqkeras.tokenizers import pad

ROWS = [[5, 7], [], [3], [2, 4, 6, 8, 10], [11, 13, 17]]


def batches(count=23, batch_size=3):
    rows = [list(range(1, 2 + row % 7)) for row in range(count)]
    numbers = np.arange(count * 2.0).reshape(count, 2)
    sequences = Sequences(rows)
    order = BucketedBatches(sequences.lengths, batch_size, seed=0)
    inputs = {"token_ids": sequences, "numbers": numbers}
    return Batches(inputs, Sequences(rows, width=9), order), rows, numbers


@pytest.mark.parametrize("taken", [[0], [3, 0], [4, 2, 1, 0], [1], [2, 2, 4]])
def test_what_is_taken_is_padded_to_its_longest(taken):
    expected, lengths = pad([ROWS[row] for row in taken])
    found = Sequences(ROWS)[np.array(taken)]
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(Sequences(ROWS).lengths[taken], lengths)


def test_a_width_pads_every_batch_alike():
    found = Sequences(ROWS, width=7)[np.array([0, 2])]
    np.testing.assert_array_equal(found, [[5, 7, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0]])


def test_rows_are_padded_by_what_is_asked_for():
    found = Sequences(ROWS, padding=-1)[np.array([2, 0])]
    np.testing.assert_array_equal(found, [[3, -1], [5, 7]])


def test_a_row_over_the_width_is_refused():
    with pytest.raises(ValueError, match="^Sequences: rows must have at most 4 ids; received 5.$"):
        Sequences(ROWS, width=4)


def test_a_batch_holds_the_rows_of_its_order():
    made, rows, numbers = batches()
    taken = list(itertools.islice(made.order.from_step(5), 11))
    for (inputs, targets), chosen in zip(itertools.islice(made.from_step(5), 11), taken):
        expected, _ = pad([rows[row] for row in chosen])
        np.testing.assert_array_equal(inputs["token_ids"], expected)
        np.testing.assert_array_equal(inputs["numbers"], numbers[chosen])
        np.testing.assert_array_equal(targets[:, : expected.shape[1]], expected)
        assert targets.shape == (3, 9) and not targets[:, expected.shape[1] :].any()


def test_a_dataset_holds_the_same_batches():
    made, *_ = batches()
    for (inputs, targets), (others, other_targets) in zip(
        itertools.islice(made.from_step(2), 9), made.dataset(2).take(9)
    ):
        assert inputs.keys() == others.keys()
        for name in inputs:
            np.testing.assert_array_equal(inputs[name], others[name])
            assert inputs[name].dtype == others[name].dtype.as_numpy_dtype
        np.testing.assert_array_equal(targets, other_targets)
