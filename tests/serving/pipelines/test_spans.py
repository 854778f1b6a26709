import itertools

import numpy as np
import pytest

from seqkeras.serving.pipelines.spans import Window, best_spans
from tests.serving.pipelines.test_tag import context_in


def windows_of(count, room, step, seed=0):
    """Windows of a context of `count` tokens behind 3 others, a special one behind them."""
    random = np.random.default_rng(seed)
    found = []
    for first in range(0, max(count - room, 0) + step, step):
        tokens = range(3, 3 + min(room, count - first))
        logits = random.normal(size=(2, tokens.stop + 1)).astype("float32")
        found.append(Window(*logits, tokens, first))
        if first + room >= count:
            return found
    return found


def context_of(token, window):
    return context_in(range(window.first, window.first + len(window.tokens)), token)


@pytest.mark.parametrize("count, room, step", [(5, 7, 3), (23, 7, 3), (17, 7, 7), (11, 5, 1)])
@pytest.mark.parametrize("max_length", [1, 4, 50])
@pytest.mark.parametrize("blanks", [(), (0, 2, 3)])
def test_the_spans_are_those_of_loops(count, room, step, max_length, blanks):
    windows = windows_of(count, room, step)
    visible = np.array([token not in blanks for token in range(count)])
    found = []
    for window, first, last in itertools.product(windows, range(count), range(count)):
        places = range(window.first, window.first + len(window.tokens))
        if not (first <= last < first + max_length and first in places and last in places):
            continue
        if {*range(first, last + 1)} <= {*blanks}:
            continue
        if context_of(first, window) == max(context_of(first, each) for each in windows):
            start, end = first - window.first + 3, last - window.first + 3
            score = float(window.start_logits[start]) + float(window.end_logits[end])
            found.append((score, first, last))
    spans, null, total = best_spans(windows, visible, max_length, 6)
    expected = sorted(found, reverse=True)
    assert [span[1:] for span in spans] == [span[1:] for span in expected[:6]]
    assert [span[0] for span in spans] == pytest.approx([span[0] for span in expected[:6]])
    assert total == pytest.approx(np.log(sum(np.exp(score) for score, _, _ in expected)))
    none = [float(each.start_logits[0]) + float(each.end_logits[0]) for each in windows]
    assert null == pytest.approx(min(none))


def test_of_two_windows_with_as_much_context_the_longer_one_counts():
    zeros = np.zeros(12, "float32")
    ones = zeros + 1
    long, short = Window(ones, zeros, range(3, 10), 0), Window(zeros, zeros, range(3, 8), 4)
    # Token 5 is the second last of the long window and the second of the short one.
    spans, _, _ = best_spans([short, long], np.ones(9, bool), 1, 9)
    by_start = {first: score for score, first, _ in spans}
    assert by_start[5] == 1.0
    assert len(by_start) == 9
