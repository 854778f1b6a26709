"""The best spans of a context, from logits of starts and ends in all its windows."""

from dataclasses import dataclass

import numpy as np

from .windows import owners


@dataclass(frozen=True, eq=False)
class Window:
    """A window of a context, with the model's logits.

    Attributes:
        start_logits, end_logits: (T,) arrays.
        tokens: the positions, among T, of the context's tokens.
        first: the index of its first token in the whole context.
    """

    start_logits: np.ndarray
    end_logits: np.ndarray
    tokens: range
    first: int


def best_spans(windows, visible, max_length, n_best):
    """Find the best answers over all windows.

        score(i, j) = start(i) + end(j),  i <= j < i + max_length
        null = min over windows of start(0) + end(0)

    An answer may start at a token only in the window in which the token has the most context
    (`serving.pipelines.windows.owners`).

    Args:
        windows: list of `Window`.
        visible: (N,) booleans, which tokens of the whole context are not white space; a span
            without such a token is no answer.
        max_length: the most tokens of an answer.
        n_best: number of spans to return.

    Returns:
        spans: list of up to n_best (score, first token, last token) in the whole context, the best
            first; ties by position in the context.
        null: the score of no answer.
        total: the logarithm of the sum of exp(score) over all spans.

    Reference: Devlin et al. 2019, section 4.3, https://arxiv.org/abs/1810.04805;
    https://github.com/google-research/bert (run_squad.py)
    """
    spans, total = [], -np.inf
    for window, scores in zip(windows, scores_by_window(windows, visible, max_length)):
        flat = scores.ravel()
        total = np.logaddexp(total, np.logaddexp.reduce(flat, initial=-np.inf))
        for index in np.argsort(-flat, kind="stable")[:n_best]:
            start, more = divmod(int(index), scores.shape[1])
            if flat[index] > -np.inf:
                first = window.first + start
                spans.append((float(flat[index]), first, first + more))
    spans = sorted(spans, key=lambda span: (-span[0], *span[1:]))[:n_best]
    return spans, null_score(windows), float(total)


def null_score(windows):
    """Return the score of no answer, see `best_spans`."""
    return min(float(window.start_logits[0]) + float(window.end_logits[0]) for window in windows)


def scores_by_window(windows, visible, max_length):
    """Yield the (n, L) scores of spans of each window, by start and length - 1; -inf for those that
    are no answer. Arguments: see `best_spans`."""
    own_windows = owners(
        [len(window.tokens) for window in windows], [window.first for window in windows]
    )
    for number, window in enumerate(windows):
        tokens = slice(window.first, window.first + len(window.tokens))
        scores = _scores(window, visible[tokens], max_length)
        scores[own_windows[tokens] != number] = -np.inf
        yield scores


def _scores(window, visible, max_length):
    """Return (n, L) scores of spans by start and length - 1; -inf for invalid ones."""
    seen = np.concatenate([[0], np.cumsum(visible)])  # visible tokens before each token
    places = slice(window.tokens.start, window.tokens.stop)
    starts, ends = (
        logits[places].astype("float64") for logits in (window.start_logits, window.end_logits)
    )
    scores = np.full((len(starts), min(max_length, len(starts))), -np.inf)
    for more in range(scores.shape[1]):
        sums = starts[: len(starts) - more] + ends[more:]
        says_something = seen[more + 1 :] > seen[: len(starts) - more]
        scores[: len(starts) - more, more] = np.where(says_something, sums, -np.inf)
    return scores
