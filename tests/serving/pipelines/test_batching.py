import numpy as np
import pytest

from seqkeras.serving.pipelines.batching import answer_in_batches, batches


@pytest.mark.parametrize("budget, most_padding", [(1, None), (64, None), (64, 5), (10**6, 0)])
def test_every_row_is_in_one_batch_within_the_limits(budget, most_padding):
    lengths = np.random.default_rng(0).integers(1, 37, 101).tolist()
    found = [*batches(lengths, budget, most_padding)]
    assert sorted(place for batch in found for place in batch) == [*range(101)]
    for batch in found:
        longest = max(lengths[place] for place in batch)
        padding = sum(longest - lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget
        assert most_padding is None or padding <= most_padding


def test_batches_are_as_large_as_the_limits_let_them_be():
    assert [*batches([3, 9, 3, 4, 3], token_budget=12)] == [[0, 2, 4], [3], [1]]
    assert [*batches([3, 9, 3, 4, 3], token_budget=16)] == [[0, 2, 4, 3], [1]]
    assert [*batches([3, 9, 3, 4, 3], token_budget=99)] == [[0, 2, 4, 3, 1]]
    assert [*batches([3, 9, 3, 4, 3], token_budget=99, most_padding=3)] == [[0, 2, 4, 3], [1]]
    assert [*batches([3, 9, 3, 4, 3], token_budget=99, most_padding=2)] == [[0, 2, 4], [3], [1]]
    assert [*batches([])] == []


def test_answers_come_in_the_order_of_the_rows():
    rows = ["ccc", "a", "bb", "dddd", "e"]
    calls = []

    def answer(batch):
        calls.append(batch)
        return [row.upper() for row in batch]

    found = answer_in_batches(rows, [*map(len, rows)], answer, token_budget=4)
    assert found == ["CCC", "A", "BB", "DDDD", "E"]
    assert calls == [["a", "e"], ["bb"], ["ccc"], ["dddd"]]
