import itertools

import numpy as np
import pytest

from seqkeras.data.batching import (
    POOL,
    BucketedBatches,
    InOrder,
    TokenBatches,
    few_sizes,
    fitting_size,
    rounded_up,
)
from tests.refusals import refusals

LENGTHS = np.random.default_rng(0).integers(1, 31, 5 * 211 + 3)


def taken(batches, step, count):
    return [batch.tolist() for batch in itertools.islice(batches.from_step(step), count)]


def one_pass(batches, number=0):
    return taken(batches, number * batches.batches_per_pass, batches.batches_per_pass)


@pytest.mark.parametrize("rows", range(1, 48))
def test_fewer_rows_than_a_batch_make_two_batches_at_least(rows):
    size = fitting_size(48, rows)
    assert size.bit_count() == 1 and size <= max(rows / 2, 1) < 2 * size
    assert fitting_size(rows, rows) == rows


@pytest.mark.parametrize("step", [1, 7, 211, 212, 500])
@pytest.mark.parametrize(("kind", "size"), [(BucketedBatches, 5), (TokenBatches, 83)])
def test_batches_go_on_from_any_step(kind, size, step):
    whole = taken(kind(LENGTHS, size, seed=3), 0, 530)
    assert taken(kind(LENGTHS, size, seed=3), step, 530 - step) == whole[step:]


def test_every_row_comes_once_in_a_pass_but_some_that_sit_out():
    batches = BucketedBatches(LENGTHS, 5, seed=3)
    assert batches.batches_per_pass == 211
    sat_out = set()
    for number in range(3):
        rows = np.concatenate(one_pass(batches, number))
        left = set(range(len(LENGTHS))) - set(rows)
        assert len(rows) == 5 * 211 and len(left) == 3
        sat_out |= left
    assert len(sat_out) > 3


def test_passes_and_seeds_have_orders_of_their_own():
    batches, other = (BucketedBatches(LENGTHS, 5, seed) for seed in (3, 4))
    orders = [one_pass(batches), one_pass(batches, 1), one_pass(other)]
    assert all(a != b for a, b in itertools.combinations(orders, 2))


def test_rows_of_a_batch_have_about_the_same_length():
    batches = one_pass(BucketedBatches(LENGTHS, 5, seed=3))
    spread = [np.ptp(LENGTHS[batch]) for batch in batches]
    # 30 lengths over a pool of sorted batches: fewer than one length a batch.
    assert np.mean(spread) < 30 / POOL * 2
    assert np.mean(spread) < np.mean([np.ptp(each) for each in LENGTHS[: 5 * 211].reshape(-1, 5)])


def test_a_batch_has_as_many_rows_as_its_tokens_allow():
    batches = TokenBatches(LENGTHS, 83, seed=3)
    for batch in one_pass(batches):
        width = rounded_up(LENGTHS[batch]).max()
        assert len(batch) == 83 // width


def test_every_row_comes_once_in_a_pass_of_tokens_but_a_batch_of_the_shortest():
    batches = TokenBatches(LENGTHS, 83, seed=3)
    for number in range(3):
        rows = np.concatenate(one_pass(batches, number))
        assert len(rows) == len(set(rows)) > len(LENGTHS) - 83
        left = sorted(set(range(len(LENGTHS))) - set(rows))
        assert (LENGTHS[left] == 1).all()


def test_most_of_the_tokens_of_a_batch_are_real():
    for batches, least in ((TokenBatches(LENGTHS, 331, seed=3), 0.85), (InOrder(LENGTHS, 5), 0)):
        order = one_pass(batches) if least else list(batches.from_step(0))
        real = sum(LENGTHS[batch].sum() for batch in order)
        padded = sum(len(batch) * LENGTHS[batch].max() for batch in order)
        assert real > least * padded


def padded(lengths, sizes):
    return sizes[np.searchsorted(sizes, lengths)].sum()


@pytest.mark.parametrize("most", [1, 2, 3, 6])
def test_no_other_few_sizes_have_less_padding(most):
    draw = np.random.default_rng(most)
    for _ in range(40):
        lengths = draw.integers(1, draw.integers(2, 120), draw.integers(1, 60))
        sizes = few_sizes(lengths, most)
        rounded = np.minimum(rounded_up(lengths), lengths.max())
        *others, last = np.unique(rounded)
        least = min(
            padded(rounded, np.array([*chosen, last]))
            for count in range(min(most, len(others) + 1))
            for chosen in itertools.combinations(others, count)
        )
        assert len(sizes) <= most and sizes[-1] == last and padded(rounded, sizes) == least


def test_a_size_must_save_as_much_padding_as_it_is_worth():
    lengths = [8] * 100 + [16] * 100
    mean = 12
    assert few_sizes(lengths, worth=100 * 8 / mean - 1).tolist() == [8, 16]
    assert few_sizes(lengths, worth=100 * 8 / mean + 1).tolist() == [16]
    draw = np.random.default_rng(0)
    for _ in range(20):
        lengths = draw.integers(1, 200, draw.integers(1, 3000))
        few = [len(few_sizes(lengths, worth=worth)) for worth in (0, 8, 64, 512, 10**6)]
        assert few == sorted(few, reverse=True) and few[-1] == 1


def test_the_last_size_holds_what_a_later_batch_needs_and_no_more():
    assert few_sizes([3, 9], longest=19).tolist() == [3, 10, 19]
    assert few_sizes([3, 17], longest=17)[-1] == 17  # the positions of a model may end there
    assert few_sizes([]).tolist() == [1]


def test_lengths_are_rounded_up_to_few_widths():
    lengths = np.arange(1, 201)
    widths = rounded_up(lengths)
    assert (widths >= lengths).all() and (widths <= lengths + 1 + lengths // 8).all()
    assert len(set(widths.tolist())) <= 32
    np.testing.assert_array_equal(rounded_up(widths), widths)
    assert [int(rounded_up(length)) for length in (1, 8, 9, 10, 11)] == [1, 8, 10, 10, 12]


def test_rows_in_order_are_all_there_the_short_ones_first():
    batches = list(InOrder([4, 1, 3, 2, 5], 2).from_step(0))
    assert [batch.tolist() for batch in batches] == [[1, 3], [2, 0], [4]]
    assert [batch.tolist() for batch in InOrder([4, 1, 3, 2, 5], 2).from_step(1)] == [[2, 0], [4]]


test_rows_that_make_no_batch_are_refused = refusals(
    (lambda: BucketedBatches([1, 2, 3], 5, seed=0), "BucketedBatches: a batch of 5 needs as many"),
    (lambda: TokenBatches([1, 2, 90], 83, seed=0), "batch_tokens must be at least 94, the longest"),
    (lambda: TokenBatches([1, 2, 3], 83, seed=0), "TokenBatches: 3 rows fill no batch of 83 token"),
)
