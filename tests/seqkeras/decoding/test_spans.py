import numpy as np
import pytest

from seqkeras.decoding import best_spans
from tests.arrays import close, floats, numbers
from tests.references.attention import softmax


def best_of_all(start_logits, end_logits, max_length):
    """Every span of one row, the first of the most probable ones."""
    starts, ends = softmax(start_logits), softmax(end_logits)
    return max(
        (
            (i, j, starts[i] * ends[j])
            for i in range(len(starts))
            for j in range(i, min(i + max_length, len(ends)))
        ),
        key=lambda span: span[2],
    )


@pytest.mark.parametrize("max_length", [1, 2, 5, 13])
def test_the_best_span_is_the_best_of_all(max_length):
    start_logits, end_logits = 3 * floats(17, 11), 3 * floats(17, 11, seed=1)
    starts, ends, scores = numbers(best_spans(start_logits, end_logits, max_length))
    for row in range(17):
        start, end, probability = best_of_all(start_logits[row], end_logits[row], max_length)
        assert (starts[row], ends[row]) == (start, end)
        close(scores[row], np.log(probability))


def test_of_equal_spans_the_first_and_shortest_is_the_best():
    starts, ends, _ = numbers(best_spans(np.zeros((2, 5)), np.zeros((2, 5)), 3))
    assert starts.tolist() == ends.tolist() == [0, 0]


def test_a_span_lies_where_positions_can_be():
    start_logits, end_logits = floats(3, 7), floats(3, 7, seed=1)
    for logits in (start_logits, end_logits):
        logits[0, 4:] = logits[1, 1:] = -1e9
    starts, ends, scores = numbers(best_spans(start_logits, end_logits, 7))
    assert ends[0] < 4 and (starts[1], ends[1]) == (0, 0)
    close(scores[1], 0)


def test_no_length_at_all_is_refused():
    with pytest.raises(ValueError, match="^best_spans: max_length must be at least 1; received 0"):
        best_spans(np.zeros((2, 5)), np.zeros((2, 5)), 0)
