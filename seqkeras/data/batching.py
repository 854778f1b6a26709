"""Batches of rows of like length, as a pure function of the step.

The order depends on the seed and the step alone, so that a run that was stopped continues with
exactly the batches that it would have seen.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

POOL = 50  # batches that are sorted together
MOST_SIZES = 6  # sizes of batches, for backends that compile a step for each
WORTH = 64.0  # batches of a pass that compiling a step takes as long as


class Order(Protocol):
    """The rows of each batch, for `seqkeras.data.batches.Batches`."""

    def from_step(self, step: int) -> Iterator[Any]:
        """Yield row indices for `step`, `step + 1`, and so on."""


class InOrder:
    """Batches of all rows, the short ones first; the last batch may be smaller.

    Args:
        lengths: (rows,) integers.
        batch_size: rows in each batch.
    """

    def __init__(self, lengths: Sequence[int] | np.ndarray, batch_size: int):
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size

    def of_pass(self, number: int) -> list[np.ndarray]:
        """Return the row indices of every batch; all passes are the same."""
        return [*self.from_step(0)]

    def from_step(self, step: int) -> Iterator[np.ndarray]:
        """Yield row indices for `step`, `step + 1`, up to the last batch."""
        rows = np.argsort(self.lengths, kind="stable")
        for start in range(step * self.batch_size, len(rows), self.batch_size):
            yield rows[start : start + self.batch_size]


class _Passes:
    """Base of the orders that read all rows again and again; a subclass cuts one pass.

    Attributes:
        batch_size: rows in each batch, or None where batches differ.
        batches_per_pass: how many there are; every pass has as many.
    """

    batches_per_pass: int
    _one_pass: Callable[[np.random.Generator], list[np.ndarray]]
    _kept: tuple[int | None, list[np.ndarray]]

    def __init__(self, lengths: Sequence[int] | np.ndarray, seed: int):
        self.lengths = np.asarray(lengths)
        self.seed = seed
        self._kept = None, []

    def from_step(self, step: int) -> Iterator[np.ndarray]:
        """Yield row indices for `step`, `step + 1`, and so on without end."""
        while True:
            number, offset = divmod(step, self.batches_per_pass)
            for batch in self.of_pass(number)[offset:]:
                yield batch
                step += 1

    def of_pass(self, number: int) -> list[np.ndarray]:
        """Return the row indices of every batch of a pass; the last pass is kept."""
        latest = self._kept
        if latest[0] != number:
            generator = np.random.default_rng([self.seed, number])
            latest = self._kept = number, self._one_pass(generator)
        return latest[1]


def fitting_size(batch_size: int, rows: int) -> int:
    """Return the rows of a batch: `batch_size`, or, where there are fewer, half of them at most.

    A smaller batch is a power of two, so that two devices, four, or eight share it alike.

    Example:
        >>> from seqkeras.data.batching import fitting_size
        >>> [fitting_size(32, rows) for rows in (100, 32, 31, 5, 1)]
        [32, 32, 8, 2, 1]
    """
    return batch_size if rows >= batch_size else 1 << max((rows // 2).bit_length() - 1, 0)


class BucketedBatches(_Passes):
    """Shuffled batches whose rows have about the same length.

    In every pass over the data: shuffle all rows, sort them by length within pools of `POOL`
    batches, cut the pools into batches, shuffle the batches. Rows that fill no batch sit that pass
    out.

    Args:
        lengths: (rows,) integers.
        batch_size: rows in each batch.
        seed: seed of all shuffling.

    Attributes:
        batches_per_pass: number of batches in each pass.

    Raises:
        ValueError: if there are fewer rows than one batch holds.

    Example:
        >>> from seqkeras.data import BucketedBatches
        >>> order = BucketedBatches([3, 9, 4, 8], batch_size=2, seed=0)
        >>> sorted(sorted(rows.tolist()) for rows in order.of_pass(0))  # by length
        [[0, 2], [1, 3]]
    """

    def __init__(self, lengths: Sequence[int] | np.ndarray, batch_size: int, seed: int):
        if len(lengths) < batch_size:
            raise ValueError(
                f"BucketedBatches: a batch of {batch_size} needs as many rows; "
                f"received {len(lengths)}."
            )
        super().__init__(lengths, seed)
        self.batch_size = batch_size
        self.batches_per_pass = len(lengths) // batch_size

    def _one_pass(self, generator):
        rows = generator.permutation(len(self.lengths))
        rows = rows[: self.batches_per_pass * self.batch_size]
        pools = [
            rows[start : start + POOL * self.batch_size]
            for start in range(0, len(rows), POOL * self.batch_size)
        ]
        ordered = [pool[np.argsort(self.lengths[pool], kind="stable")] for pool in pools]
        batches = np.concatenate(ordered).reshape(-1, self.batch_size)
        return batches[generator.permutation(len(batches))]


class TokenBatches(_Passes):
    """Shuffled batches of like length with about as many tokens each, padding included.

    Lengths are rounded up to a few widths, see `rounded_up`. In every pass: shuffle all rows, sort
    them by width, the widest first, and cut: a batch has as many rows as fit into `batch_tokens` at
    the width of its widest row. Shuffle the batches. The rows of the last, narrowest batch sit the
    pass out unless they fill it.

    Args:
        lengths: (rows,) integers.
        batch_tokens: rows times width of a batch, at most.
        seed: seed of all shuffling.

    Attributes:
        batches_per_pass: number of batches in each pass.

    Raises:
        ValueError: if a row is longer than a batch, or all rows together fill none.

    Example:
        >>> from seqkeras.data import TokenBatches
        >>> order = TokenBatches([8, 8, 2, 2, 2, 2, 2, 2, 2, 2], batch_tokens=16, seed=0)
        >>> sorted(len(rows) for rows in order.of_pass(0))  # 2 rows of 8 tokens, 8 rows of 2
        [2, 8]
    """

    batch_size = None

    def __init__(self, lengths: Sequence[int] | np.ndarray, batch_tokens: int, seed: int):
        super().__init__(lengths, seed)
        self.widths = rounded_up(self.lengths)
        widest = int(self.widths.max(initial=1))
        if widest > batch_tokens:
            raise ValueError(
                f"TokenBatches: batch_tokens must be at least {widest}, the longest row rounded "
                f"up; received {batch_tokens}."
            )
        widths, starts, start = -np.sort(-self.widths), [], 0
        while start < len(widths) and start + batch_tokens // widths[start] <= len(widths):
            starts.append(start)
            start += int(batch_tokens // widths[start])
        if not starts:
            raise ValueError(
                f"TokenBatches: {len(widths)} rows fill no batch of {batch_tokens} tokens."
            )
        self.ends = [*starts[1:], start]
        self.batches_per_pass = len(starts)

    def _one_pass(self, generator):
        rows = generator.permutation(len(self.lengths))
        rows = rows[np.argsort(-self.widths[rows], kind="stable")]
        batches = np.split(rows[: self.ends[-1]], self.ends[:-1])
        return [batches[index] for index in generator.permutation(len(batches))]


def rounded_up(lengths: Sequence[int] | np.ndarray | int) -> np.ndarray:
    """Return lengths, each rounded up to the next of few widths: 1, 2, ..., 8, 10, 12, 14, 16, 19,
    ...

    Each width is an eighth above the one before, and one more; so there are 32 of them up to 200,
    and padding adds 5 % on average.

    Args:
        lengths: integers, an array or one.
    """
    lengths = np.asarray(lengths)
    widths = [1]
    while widths[-1] < lengths.max(initial=1):
        widths.append(widths[-1] + 1 + widths[-1] // 8)
    return np.array(widths)[np.searchsorted(widths, lengths)]


def few_sizes(
    lengths: Sequence[int] | np.ndarray,
    most: int = MOST_SIZES,
    longest: int | None = None,
    worth: float = 0.0,
) -> np.ndarray:
    """Return few sizes, in order, to which batches are padded with the least padding.

    They are chosen among the lengths as `rounded_up` has them, but none is beyond the longest.

    Args:
        lengths: (batches,) integers, the length of each batch's longest row.
        most: how many sizes there may be.
        longest: what a later batch may need too; None: the longest of these.
        worth: how many batches of the mean length each size must save in padding.
    """
    longest = int(np.max(lengths, initial=longest or 1))
    rounded = np.minimum(rounded_up([*lengths, longest]), longest)
    sizes, rows = np.unique(rounded, return_counts=True)
    behind = np.cumsum(rows)  # rows of this size and the smaller ones
    least, before = behind * sizes, []  # of all up to each size, which is the last of so many
    costs = [least[-1]]
    for _ in range(min(most, len(sizes)) - 1):
        # [j, i]: sizes j and, of those below it, i
        sums = least + (behind[:, np.newaxis] - behind) * sizes[:, np.newaxis]
        sums[np.triu_indices(len(sizes))] = np.iinfo(sums.dtype).max
        before.append(np.argmin(sums, axis=1))
        least = np.minimum(least, np.min(sums, axis=1))
        costs.append(least[-1])
    number = np.argmin(np.array(costs) / rounded.mean() + worth * np.arange(len(costs)))
    chosen = [len(sizes) - 1]
    for places in reversed(before[:number]):
        chosen.append(places[chosen[-1]])
    return sizes[sorted({*chosen})]
