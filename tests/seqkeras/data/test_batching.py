import itertools

import numpy as np
import pytest

from seqkeras.data.batching import POOL, BucketedBatches

LENGTHS = np.random.default_rng(0).integers(1, 31, 5 * 211 + 3)


def taken(batches, step, count):
    return [batch.tolist() for batch in itertools.islice(batches.from_step(step), count)]


def one_pass(batches, number=0):
    return taken(batches, number * batches.batches_per_pass, batches.batches_per_pass)


@pytest.mark.parametrize("step", [1, 7, 211, 212, 500])
def test_batches_go_on_from_any_step(step):
    whole = taken(BucketedBatches(LENGTHS, 5, seed=3), 0, 530)
    assert taken(BucketedBatches(LENGTHS, 5, seed=3), step, 530 - step) == whole[step:]


def test_every_row_comes_once_in_a_pass():
    batches = BucketedBatches(LENGTHS, 5, seed=3)
    assert batches.batches_per_pass == 211
    for number in range(3):
        rows = np.concatenate(one_pass(batches, number))
        assert len(rows) == len(set(rows)) == 5 * 211
        assert set(rows) <= set(range(len(LENGTHS)))


def test_other_rows_sit_out_in_another_pass():
    batches = BucketedBatches(LENGTHS, 5, seed=3)
    sat_out = [
        set(range(len(LENGTHS))) - set(np.concatenate(one_pass(batches, number)))
        for number in range(3)
    ]
    assert all(len(rows) == 3 for rows in sat_out)
    assert len(set().union(*sat_out)) > 3


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


def test_batches_do_not_come_in_the_order_of_length():
    lengths = LENGTHS[: 5 * POOL]
    means = [lengths[batch].mean() for batch in one_pass(BucketedBatches(lengths, 5, seed=3))]
    assert abs(np.corrcoef(means, np.arange(POOL))[0, 1]) < 0.5


def test_one_full_batch_is_enough():
    batches = BucketedBatches([4, 2, 9], 3, seed=0)
    assert [sorted(batch) for batch in taken(batches, 0, 4)] == [[0, 1, 2]] * 4


def test_fewer_rows_than_a_batch_are_refused():
    message = r"^BucketedBatches: a batch of 5 needs as many rows; received 3\.$"
    with pytest.raises(ValueError, match=message):
        BucketedBatches([1, 2, 3], 5, seed=0)
