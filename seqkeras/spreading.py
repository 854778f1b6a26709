"""Which of many examples are shown, or scored: never of one label alone, in a sorted file."""

import itertools
from collections.abc import Hashable

import numpy as np


def evenly_spread(count, size):
    """Return places of `count` of `size` rows, the first and the last among them; at most all."""
    return sorted({*np.linspace(0, size - 1, min(count, size)).astype(int).tolist()})


def spread(targets):
    """Return the places of all examples, in an order each beginning of which is spread over them.

    Labels take turns, and the examples of a label come from everywhere in the file. The first
    example stays the first.

    Args:
        targets: of the examples: labels, numbers, lists of labels or tags; None where there are
            none. Examples with the same set of tags count as one label; an array is a
            target of its own.
    """
    groups = {}
    for place, target in enumerate(targets):
        groups.setdefault(_kind(target, place), []).append(place)
    groups = [*groups.values()]
    columns = [
        [groups[at][place] for place in _scattered(len(groups[at]))]
        for at in _scattered(len(groups))
    ]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*columns))
    return [place for place in turns if place is not None]


def _kind(target, place):
    """Return what examples that show the same have in common."""
    if isinstance(target, list | tuple) and all(isinstance(part, str) for part in target):
        return frozenset(target)
    return target if isinstance(target, Hashable) else ("", place)


def _scattered(size):
    """Return the places of `size` rows: both ends, then those between them, ever closer."""
    counts = (2**power for power in range(1, size.bit_length() + 1))
    return [*dict.fromkeys(place for count in counts for place in evenly_spread(count, size))]
