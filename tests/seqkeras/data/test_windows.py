"""Windows of a stream, beside slices of it."""

import itertools

import numpy as np
import pytest

from seqkeras.data.windows import (
    NO_TARGET,
    Windows,
    consecutive_windows,
    random_windows,
    with_orders,
    with_prefixes,
)

TOKENS = np.arange(100, 153)


def first(batches, count, step=0):
    return [*itertools.islice(batches.from_step(step), count)]


def test_a_window_is_a_slice_and_its_targets_are_the_tokens_behind():
    starts = np.array([0, 46, 11])
    expected = [TOKENS[start : start + 7] for start in starts]
    np.testing.assert_array_equal(Windows(TOKENS, 7)[starts], expected)
    np.testing.assert_array_equal(
        Windows(TOKENS, 7, 1)[starts[[0, 2]]], np.array(expected)[::2] + 1
    )


def test_random_windows_are_a_function_of_seed_and_step_and_reach_both_ends():
    whole = first(random_windows(TOKENS, 7, 3, seed=5), 200)
    later = first(random_windows(TOKENS, 7, 3, seed=5), 3, step=11)
    for (inputs, targets), (expected, labels) in zip(later, whole[11:]):
        np.testing.assert_array_equal(inputs["token_ids"], expected["token_ids"])
        np.testing.assert_array_equal(targets, labels)
        np.testing.assert_array_equal(inputs["token_ids"] + 1, targets)
    starts = np.concatenate([inputs["token_ids"][:, 0] for inputs, _ in whole])
    assert (starts.min(), starts.max()) == (100, 152 - 7)
    other = first(random_windows(TOKENS, 7, 3, seed=6), 1)[0][0]["token_ids"]
    assert not np.array_equal(other, whole[0][0]["token_ids"])


def test_no_target_of_a_window_stands_in_its_prefix():
    tokens = np.arange(100, 197)
    batches = with_prefixes(random_windows(tokens, 7, 5, seed=3), seed=3)
    prefixes = set()
    for (inputs, targets), again in zip(first(batches, 23, step=4), first(batches, 23, step=4)):
        np.testing.assert_array_equal(targets, again[1])
        for row, target, prefix in zip(inputs["token_ids"], targets, inputs["prefix_lengths"]):
            follows = [
                token if place >= prefix else NO_TARGET
                for place, token in enumerate(range(row[0] + 1, row[0] + 8), start=1)
            ]
            assert target.tolist() == follows
            prefixes.add(int(prefix))
    assert prefixes == {1, 2, 3, 4, 5, 6, 7}


def test_each_row_of_each_batch_has_an_order_of_its_own():
    batches = with_orders(random_windows(TOKENS[:15], 7, 5, seed=3), seed=3)
    steps = first(batches, 23, step=4)
    orders = np.concatenate([inputs["order"] for inputs, _ in steps])
    np.testing.assert_array_equal(np.sort(orders), np.tile(np.arange(7), (115, 1)))
    assert len(np.unique(orders, axis=0)) > 110  # of 5040, for 8 windows
    again = np.concatenate([inputs["order"] for inputs, _ in first(batches, 23, step=4)])
    np.testing.assert_array_equal(again, orders)
    other = with_orders(random_windows(TOKENS[:15], 7, 5, seed=3), seed=4)
    assert not np.array_equal(first(other, 1, step=4)[0][0]["order"], orders[:5])


def test_rows_of_consecutive_windows_go_on_and_begin_anew_with_each_pass():
    batches = consecutive_windows(TOKENS, 5, 3)
    assert batches.order.batches_per_pass == 3
    found = first(batches, 7)
    rows = np.concatenate([inputs["token_ids"] for inputs, _ in found[:3]], axis=1)
    np.testing.assert_array_equal(rows, [TOKENS[17 * row : 17 * row + 15] for row in range(3)])
    begins = [inputs["begins"].tolist() for inputs, _ in found]
    assert begins == [[place % 3 == 0] * 3 for place in range(7)]
    for inputs, targets in found:
        np.testing.assert_array_equal(inputs["token_ids"] + 1, targets)
    [(resumed, _)] = first(batches, 1, step=5)
    np.testing.assert_array_equal(resumed["token_ids"], found[2][0]["token_ids"])


def test_a_stream_without_a_window_is_refused():
    message = "^RandomStarts: the stream must have 54 tokens at least; received 53.$"
    with pytest.raises(ValueError, match=message):
        random_windows(TOKENS, 53, 2, seed=0)
    message = "^ConsecutiveStarts: the stream must have 55 tokens at least; received 53.$"
    with pytest.raises(ValueError, match=message):
        consecutive_windows(TOKENS, 18, 3)
