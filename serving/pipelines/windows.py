"""A text in windows, each of which shares tokens with the one before."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Windows:
    """A text in windows; one that is short enough is in one.

    Attributes:
        rows: what the model reads of each: an `Encoding` if nothing else is said.
        tokens: for each, the range of those of its tokens that are the text's.
        firsts: for each, which token of the whole text the first of them is.
    """

    rows: list
    tokens: list
    firsts: list

    @classmethod
    def of(cls, encodings, stride, before=0):
        """Return the `Windows` of `Encoding`s.

        Args:
            encodings: list of `Encoding`.
            stride: how many tokens of the text a window begins behind the one before, at most.
            before: how many tokens of another text stand before the text's in each.
        """
        tokens = []
        for each in encodings:
            own = [place for place, offset in enumerate(each.offsets) if offset is not None]
            own = own[before:]
            tokens.append(range(own[0], own[-1] + 1) if own else range(0))
        step = min(stride, len(tokens[0]))
        return cls(encodings, tokens, [number * step for number in range(len(encodings))])

    def of_text(self, field):
        """Return a field of the encodings for every token of the text."""
        values = []
        for row, tokens, first in zip(self.rows, self.tokens, self.firsts):
            values[first:] = getattr(row, field)[tokens.start : tokens.stop]
        return values

    def owners(self):
        """Return for each token of the text the number of the window where it has most context."""
        return owners([len(each) for each in self.tokens], self.firsts)


def owners(counts, firsts):
    """Return for each token of a text the number of the window where it has most context.

    That is the greatest min(tokens to its left, tokens to its right) + 0.01 * tokens of the window.

    Args:
        counts: how many tokens of the text each window has.
        firsts: which token of the text the first of each window is.

    Reference: https://github.com/google-research/bert (run_squad.py, _check_is_max_context)
    """
    size = max(first + count for first, count in zip(firsts, counts))
    best, found = np.full(size, -np.inf), np.zeros(size, dtype=int)
    for number, (first, count) in enumerate(zip(firsts, counts)):
        places = np.arange(count)
        context = np.minimum(places, places[::-1]) + 0.01 * count
        own = slice(first, first + count)
        better = context > best[own]
        best[own][better] = context[better]
        found[own][better] = number
    return found
