"""Where `seqkeras train tune` looks for the value of an option: `search` of `option`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Self

MORE_LAYERS = 2  # than an option has


class Range(NamedTuple):
    """Numbers between two, whole ones if both are whole.

    Args:
        low: the least number.
        high: the largest number.
        is_log: whether numbers are drawn evenly by their logarithm.
    """

    low: float
    high: float
    is_log: bool = False


@dataclasses.dataclass(frozen=True)
class Space:
    """Values that `seqkeras train tune` tries for an option.

    Args:
        about: function: value of the option -> a `Range`, or a tuple of values; None: the choices
            of the option's type.
        is_usual: whether the option is searched where --search names none.
        has_weights: whether weights of one value do not fit another value.
        unset: function: all options -> value of the option where it is None; by default there is
            nothing to search then.

    Example:
        >>> from seqkeras.training.options.spaces import SIZE, Range, Space
        >>> SIZE.about(64)
        (32, 64, 128)
        >>> Space(lambda size: Range(1, size)).about(3)
        Range(low=1, high=3, is_log=False)
    """

    about: Callable[[Any], Range | tuple[Any, ...]] | None
    is_usual: bool = True
    has_weights: bool = False
    unset: Callable[[Any], Any] = lambda options: None

    def where_unset(self, unset: Callable[[Any], Any]) -> Self:
        """Return the space with another `unset`."""
        return dataclasses.replace(self, unset=unset)


def _halved_and_doubled(size):
    return tuple(dict.fromkeys((max(1, size // 2), size, 2 * size)))


RATE = Space(lambda rate: Range(rate / 10, rate * 10, is_log=True))
DROPOUT = Space(lambda rate: Range(0.0, 0.5))
BATCH = Space(_halved_and_doubled)
LAYERS = Space(lambda count: Range(1, count + MORE_LAYERS), has_weights=True)
SIZE = Space(_halved_and_doubled, has_weights=True)
CHOICE = Space(None, has_weights=True)
# Searched only where --search names them.
DECAY = Space(lambda decay: Range(1e-4, 0.1, is_log=True), False, unset=lambda options: 0.0)
SMOOTHING = Space(lambda share: Range(0.0, 0.2), False)
OTHER_DROPOUT = dataclasses.replace(DROPOUT, is_usual=False)
LENGTH = Space(_halved_and_doubled, False)
OTHER_SIZE = dataclasses.replace(SIZE, is_usual=False)
OTHER_CHOICE = dataclasses.replace(CHOICE, is_usual=False)
