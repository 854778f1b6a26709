"""A text in overlapping windows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Windows:
    """A text in windows; a short text is one window.

    Attributes:
        rows: the model's input for each window, by default an `Encoding`.
        tokens: for each window, the range of the text's tokens in it.
        firsts: for each window, the index of its first token in the whole text.
    """

    rows: list
    tokens: list
    firsts: list

    @classmethod
    def of(cls, encodings, stride, before=0):
        """Return the `Windows` of `Encoding`s.

        Args:
            encodings: list of `Encoding`.
            stride: the largest distance in tokens between the starts of two windows.
            before: the number of tokens of another text before the text in each window.
        """
        tokens = []
        for encoding in encodings:
            indices = [index for index, offset in enumerate(encoding.offsets) if offset is not None]
            indices = indices[before:]
            tokens.append(range(indices[0], indices[-1] + 1) if indices else range(0))
        step = min(stride, len(tokens[0]))
        return cls(encodings, tokens, [number * step for number in range(len(encodings))])

    def of_text(self, field):
        """Return a field of the encodings for every token of the text."""
        values = []
        for row, tokens, first in zip(self.rows, self.tokens, self.firsts):
            values[first:] = getattr(row, field)[tokens.start : tokens.stop]
        return values

    def owners(self):
        """Return for each token of the text the index of the window where it has the most
        context."""
        return owners([len(tokens) for tokens in self.tokens], self.firsts)


def owners(counts, firsts):
    """Return for each token of a text the index of the window where it has the most context.

    It maximizes min(tokens to its left, tokens to its right) + 0.01 * tokens of the window.

    Args:
        counts: the number of the text's tokens in each window.
        firsts: the index of each window's first token in the text.

    Reference: https://github.com/google-research/bert (run_squad.py, _check_is_max_context)
    """
    size = max(first + count for first, count in zip(firsts, counts))
    best, windows = np.full(size, -np.inf), np.zeros(size, dtype=int)
    for number, (first, count) in enumerate(zip(firsts, counts)):
        places = np.arange(count)
        context = np.minimum(places, places[::-1]) + 0.01 * count
        tokens = slice(first, first + count)
        better = context > best[tokens]
        best[tokens][better] = context[better]
        windows[tokens][better] = number
    return windows
