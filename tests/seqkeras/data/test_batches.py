"""Batches of rows of different lengths, beside a loop over the rows."""

import itertools
import re

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.batching import MOST_SIZES, BucketedBatches, InOrder, TokenBatches
from seqkeras.data.nested import NestedSequences
from seqkeras.tokenizers import pad
from tests.conftest import CHECKOUT


def batches(count=23, batch_size=3):
    rows = [list(range(1, 2 + row % 7)) for row in range(count)]
    numbers = np.arange(count * 2.0).reshape(count, 2)
    sequences = Sequences(rows)
    order = BucketedBatches(sequences.lengths, batch_size, seed=0)
    inputs = {"token_ids": sequences, "numbers": numbers}
    return Batches(inputs, Sequences(rows, width=9), order, few_shapes=False), rows, numbers


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.booleans())),
    st.tuples(st.integers(0, 1), st.integers(0, 1)),
)
def test_rows_are_chosen_cut_and_joined_as_lists_are(drawn, cut):
    rows, are_chosen = [row for row, _ in drawn], np.array([*(chosen for _, chosen in drawn)], bool)
    first, last = cut
    whole = Sequences(rows)
    inner = whole.without_ends(first, last, padding=-1)
    expected = [row[first : len(row) - last] for row in rows]
    chosen = [row for row, is_chosen in zip(expected, are_chosen) if is_chosen]
    assert inner.chosen(are_chosen).rows() == chosen
    joined = Sequences.joined([inner.chosen(are_chosen), inner, whole])
    assert joined.rows() == chosen + expected + rows
    taken = np.arange(len(joined.lengths))[::-1]
    ids, lengths = pad((chosen + expected + rows)[::-1])
    np.testing.assert_array_equal(joined.lengths[taken], lengths)
    real = np.arange(ids.shape[1]) < lengths[:, None]
    np.testing.assert_array_equal(joined[taken], np.where(real, ids, -1))


def test_a_row_over_the_width_is_refused():
    with pytest.raises(ValueError, match="^Sequences: rows must have at most 4 ids; received 5.$"):
        Sequences([[3], [2, 4, 6, 8, 10]], width=4)


def test_a_batch_holds_the_rows_of_its_order():
    made, rows, numbers = batches()
    taken = list(itertools.islice(made.order.from_step(5), 11))
    for (inputs, targets), chosen in zip(itertools.islice(made.from_step(5), 11), taken):
        expected, _ = pad([rows[row] for row in chosen])
        np.testing.assert_array_equal(inputs["token_ids"], expected)
        np.testing.assert_array_equal(inputs["numbers"], numbers[chosen])
        np.testing.assert_array_equal(targets[:, : expected.shape[1]], expected)
        assert targets.shape == (3, 9) and not targets[:, expected.shape[1] :].any()


def assert_same(array, tensor):
    np.testing.assert_array_equal(array, tensor)
    assert array.dtype == tensor.dtype.as_numpy_dtype


@pytest.mark.parametrize("made", [batches()[0], batches()[0].in_groups(2, 0)])
def test_a_dataset_holds_the_same_batches(made):
    for batch, same in zip(itertools.islice(made.from_step(2), 9), made.dataset(2).take(9)):
        keras.tree.map_structure(assert_same, batch, same)


@pytest.mark.parametrize("kind", [BucketedBatches, TokenBatches])
def test_keras_fits_batches_as_they_are(kind):
    lengths = np.random.default_rng(0).integers(3, 9, 61)
    sequences = Sequences([[row % 5 + 1] * length for row, length in enumerate(lengths.tolist())])
    order = kind(lengths, 7 if kind is BucketedBatches else 40, seed=0)
    made = Batches({"token_ids": sequences}, lengths.astype("float32"), order)
    seen = []

    class Counted(keras.Model):
        def build(self, shapes):
            self.one = self.add_weight(shape=(), initializer="ones")

        def call(self, inputs):
            return self.one * keras.ops.sum(keras.ops.cast(inputs["token_ids"] > 0, "float32"), 1)

    class Kept(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(logs["loss"])

    model = Counted()
    model.compile("sgd", "mse")
    first = [made[place][1].tolist() for place in range(len(made))]
    assert len(made) == order.batches_per_pass
    model.fit(made, epochs=2, verbose=0, callbacks=[Kept()])
    assert seen == [0, 0]  # the lengths are the numbers of real tokens
    assert made.number == 1
    assert [made[place][1].tolist() for place in range(len(made))] != first


def test_a_batch_has_one_of_six_shapes_where_a_step_is_compiled_for_each():
    draw = np.random.default_rng(0)
    sources = [[1] * draw.integers(1, 90) for _ in range(600)]
    targets = Sequences([[2] * max(1, len(row) + draw.integers(-9, 9)) for row in sources])
    children = [[[3] * draw.integers(0, 5) for _ in row[:50]] for row in sources]
    inputs = {"ids": Sequences(sources), "children": NestedSequences(children)}
    order = BucketedBatches(inputs["ids"].lengths, 5, seed=0)
    plain, few = (
        [*itertools.islice(Batches(inputs, targets, order, few).from_step(0), 240)]
        for few in (False, True)
    )
    shapes = {(*map(np.shape, (x["ids"], x["children"], y)),) for x, y in few}
    assert len(shapes) <= MOST_SIZES < len({(x["ids"].shape, y.shape) for x, y in plain})
    for expected, padded in zip(plain, few, strict=True):
        for a, b in zip(keras.tree.flatten(expected), keras.tree.flatten(padded), strict=True):
            within = tuple(map(slice, a.shape))
            np.testing.assert_array_equal(a, b[within])
            assert b.sum() == a.sum()


def test_rows_that_vary_beyond_the_longest_are_padded_to_a_size_of_their_own():
    rows = Sequences([[1] * 3, [1] * 5])
    longer = Sequences([[1] * 3, [1] * 11])
    order = BucketedBatches(rows.lengths, 2, seed=0)
    made = Batches(rows, rows, order, True, vary=lambda number, rows: (longer, longer))
    assert next(made.from_step(0))[0].shape == (2, 11)


def test_few_shapes_do_not_exceed_the_tokens_of_a_batch():
    lengths = np.random.default_rng(0).lognormal(2.5, 0.7, 3000).astype(int) + 1
    rows = Sequences([[1] * length for length in lengths.tolist()])
    order = TokenBatches(lengths, 512, seed=0)
    made = itertools.islice(Batches(rows, rows, order, True).from_step(0), order.batches_per_pass)
    assert max(inputs.size for inputs, _ in made) <= 512


def test_arrays_of_a_given_width_have_no_part_in_the_choice_of_sizes():
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 60, 300)
    rows = Sequences([[1] * length for length in lengths.tolist()])
    wide = Sequences([[1] * draw.integers(1, 60) for _ in lengths], width=64)
    nested = NestedSequences([[[1] * draw.integers(1, 60)] for _ in lengths], width=64)
    order = BucketedBatches(lengths, 5, seed=0)
    alone, beside = (
        [y.shape for _, y in itertools.islice(Batches(x, rows, order, True).from_step(0), 60)]
        for x in (np.zeros(300), {"wide": wide, "nested": nested})
    )
    assert alone == beside


@pytest.mark.parametrize("few", [False, True])
def test_batches_that_end_are_padded_too(few):
    rows = Sequences([[1] * length for length in range(1, 24)])
    made = [*Batches(rows, rows, InOrder(rows.lengths, 5), few).from_step(0)]
    assert [len(inputs) for inputs, _ in made] == [5, 5, 5, 5, 3]
    assert [int(inputs.sum()) for inputs, _ in made] == [15, 40, 65, 90, 66]


@pytest.mark.parametrize("ignored", [None, 0])
def test_weights_of_a_group_make_the_mean_over_its_targets(ignored):
    made, *_ = batches()
    plain = list(itertools.islice(made.from_step(6), 6))
    grouped = list(itertools.islice(made.in_groups(3, ignored).from_step(2), 6))
    losses = np.random.default_rng(0).normal(size=(6, 3, 9))
    for start in (0, 3):
        targets = np.stack([y for _, y in plain[start : start + 3]])
        counted = np.ones_like(targets, bool) if ignored is None else targets != ignored
        weights = np.stack([w for _, _, w in grouped[start : start + 3]])
        weighted = (weights * losses[start : start + 3]).sum() / 3
        assert weighted == pytest.approx(losses[start : start + 3][counted].mean(), rel=1e-5)
    for (_, targets), (_, others, _) in zip(plain, grouped, strict=True):
        np.testing.assert_array_equal(targets, others)


def test_targets_that_are_nan_count_nothing_in_a_group():
    numbers = np.where(np.arange(24).reshape(8, 3) % 5, 1.0, np.nan)
    order = BucketedBatches(np.ones(8), 4, 0)
    made = Batches({"x": numbers}, numbers, order).in_groups(2, float("nan"))
    for _, targets, weights in itertools.islice(made.from_step(0), 2):
        np.testing.assert_allclose(weights, np.where(np.isnan(targets), 0, 2 / 19), rtol=1e-6)


def test_a_group_in_which_no_target_counts_has_no_weight():
    zeros = np.zeros((8, 3))
    made = Batches({"x": zeros}, zeros, BucketedBatches(np.ones(8), 4, 0)).in_groups(2, 0)
    for _, _, weights in itertools.islice(made.from_step(0), 2):
        np.testing.assert_array_equal(weights, zeros[:4])


def test_tokens_are_those_of_the_targets():
    made, rows, _ = batches()
    made.arrays = made.arrays[0], made.arrays[0]["token_ids"]
    expected = [sum(len(rows[row]) for row in batch) for batch in made.order.of_pass(0)]
    assert list(itertools.islice(made.tokens_from(0), len(expected))) == expected
    made.arrays = made.arrays[0], np.zeros((len(rows), 1))  # a number of each row
    assert list(itertools.islice(made.tokens_from(0), len(expected))) == expected


def test_the_page_fits_batches_as_written():
    page = (CHECKOUT / "docs/training/own-fit.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(compile(code, "own-fit.md", "exec"), names)
    assert names["batches"].number == 2


def varied_batches():
    """Batches whose rows end with the number of the batch, of which there are some in a pass."""
    made, rows, numbers = batches()

    def vary(number, chosen):
        changed = Sequences([[*rows[row], 100 + number] for row in chosen])
        return {"token_ids": changed, "numbers": numbers[chosen] + number}, made.arrays[1][chosen]

    return Batches(*made.arrays, made.order, vary=vary), made


@pytest.mark.parametrize("step", [0, 5, 16])
def test_each_batch_may_have_rows_of_its_own(step):
    varied, made = varied_batches()
    both = itertools.islice(zip(made.from_step(step), varied.from_step(step)), 20)
    for index, ((plain, targets), (inputs, others)) in enumerate(both, step):
        whole = inputs["token_ids"]
        assert (whole.max(axis=1) == 100 + index).all()
        np.testing.assert_array_equal(np.where(whole < 100, whole, 0)[:, :-1], plain["token_ids"])
        np.testing.assert_array_equal(inputs["numbers"], plain["numbers"] + index)
        np.testing.assert_array_equal(others, targets)


def test_epochs_of_fit_are_the_passes():
    varied, _ = varied_batches()
    for epoch in range(3):
        varied.on_epoch_begin()
        for index in range(len(varied)):
            inputs, _ = varied[index]
            number = epoch * len(varied) + index
            assert (inputs["token_ids"].max(axis=1) == 100 + number).all()


def test_an_iterator_that_is_dropped_waits_for_no_tuning():
    made, _, _ = batches()
    assert made.dataset().options().autotune.enabled is False
