"""The choice of examples to show or score: never one label alone, even in a sorted file."""

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
        targets: targets of the examples: labels, numbers, lists of labels or tags; None where there
            are none. Examples with the same set of tags count as one label; an array is a target of
            its own.
    """
    groups = {}
    for index, target in enumerate(targets):
        groups.setdefault(_kind(target, index), []).append(index)
    groups = [*groups.values()]
    columns = [
        [groups[at][index] for index in _scattered(len(groups[at]))]
        for at in _scattered(len(groups))
    ]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*columns))
    return [index for index in turns if index is not None]


def _kind(target, index):
    """Return what examples that show the same have in common."""
    if isinstance(target, list | tuple) and all(isinstance(part, str) for part in target):
        return frozenset(target)
    return target if isinstance(target, Hashable) else ("", index)


def _scattered(size):
    """Return the places of `size` rows: both ends, then those between them, ever closer."""
    counts = (2**power for power in range(1, size.bit_length() + 1))
    return [*dict.fromkeys(index for count in counts for index in evenly_spread(count, size))]
