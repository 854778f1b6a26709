"""Batches of masked rows, as a function of the seed and the step.

In every pass the shards are shuffled, and the rows within each, so that a batch reads one shard or
two; rows that fill no batch sit the pass out. Rows and masks are drawn anew for every batch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from keras import tree

from seqkeras.data.batches import Batches
from seqkeras.data.batching import rounded_up

if TYPE_CHECKING:
    from seqkeras.data.masking import Masking


class Drawn(NamedTuple):
    """A batch of an order: the seed of what is drawn for it, and its rows by shard and chunk."""

    seed: list
    shards: list
    chunks: list


class ShardOrder:
    """Rows of shards, pass by pass.

    Args:
        counts: (shards,) rows of each.
        batch_size: rows in each batch.
        seed: seed of the order, and of what is drawn for a batch.

    Attributes:
        batches_per_pass: how many there are in a pass.

    Raises:
        ValueError: if there are fewer rows than one batch holds.
    """

    def __init__(self, counts: Sequence[int], batch_size: int, seed: int):
        if sum(counts) < batch_size:
            raise ValueError(f"a batch of {batch_size} needs as many rows; received {sum(counts)}.")
        self.counts, self.batch_size, self.seed = np.asarray(counts), batch_size, seed
        self.batches_per_pass = int(sum(counts)) // batch_size
        self._rows = functools.lru_cache(maxsize=3)(self._shuffled)

    def from_step(self, step: int) -> Iterator[Drawn]:
        """Yield a `Drawn` for `step`, `step + 1`, and so on without end."""
        while True:
            yield self.batch(*divmod(step, self.batches_per_pass))
            step += 1

    def batch(self, number: int, index: int) -> Drawn:
        """Return the `Drawn` of a place in a pass."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.counts))
        ends = np.cumsum(self.counts[order])
        rows = np.arange(index * self.batch_size, (index + 1) * self.batch_size)
        at = np.searchsorted(ends, rows, side="right")
        shards, within = order[at], rows - (ends - self.counts[order])[at]
        chunks = [self._rows(number, shard)[row] for shard, row in zip(shards.tolist(), within)]
        return Drawn([self.seed, number, index], shards.tolist(), chunks)

    def _shuffled(self, number, shard):
        return np.random.default_rng([self.seed, number, shard, 1]).permutation(self.counts[shard])


@dataclasses.dataclass(frozen=True)
class _Ahead:
    """The shape and dtype of an array that is made for each batch."""

    shape: tuple
    dtype: np.dtype


class RowBatches(Batches):
    """Base of batches of rows that are drawn anew for each; a subclass makes one of a `Drawn`.

    Args:
        inputs, targets: name -> whether the array has an axis of tokens after the one of rows;
            targets without names are True.
        rows: see the subclass.
        order: a `ShardOrder`, or what yields `Drawn`.
        max_length: most tokens of a row.
        few_shapes: see `Batches`: pad each batch to the longest row there can be.
    """

    def __init__(
        self,
        inputs: dict[str, bool],
        targets: dict[str, bool] | bool,
        rows: Any,
        order: ShardOrder | EveryRow,
        max_length: int,
        few_shapes: bool | None = None,
    ):
        def ahead(has_tokens):
            shape = (order.batch_size, None) if has_tokens else (order.batch_size,)
            return _Ahead(shape, np.dtype("int64"))

        of_inputs, of_targets = (tree.map_structure(ahead, part) for part in (inputs, targets))
        super().__init__(of_inputs, of_targets, order, few_shapes)
        self.rows, self.max_length = rows, max_length

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return self._batch(self.order.batch(max(self.number, 0), index))

    def tokens_from(self, step: int) -> Iterator[int]:
        """Yield the number of tokens that the rows of a batch hold, if they are full."""
        while True:
            yield self.order.batch_size * self.max_length
            step += 1

    def width(self, length: int) -> int:
        """Return the tokens to which the rows of a batch are padded, if the longest has so many."""
        return self.max_length if self.few_shapes else min(int(rounded_up(length)), self.max_length)


class PretrainingBatches(RowBatches):
    """({"token_ids", "lengths", "masked_positions", "segment_ids"}, {"masked", "next"}) of rows.

    Targets of -1 count nothing. Without segments there is no "segment_ids" and no
    "next", whose target is 0 where the second text follows and 1 where it does not.

    Args:
        rows: a `seqkeras.data.sentence_pairs.SentencePairs` or `FullSentences`.
        masking: a `seqkeras.data.masking.Masking`.
        order, max_length, few_shapes: see `RowBatches`.
    """

    def __init__(
        self,
        rows: Any,
        masking: Masking,
        order: ShardOrder | EveryRow,
        max_length: int,
        few_shapes: bool | None = None,
    ):
        inputs = {"token_ids": True, "lengths": False, "masked_positions": True}
        targets = {"masked": True}
        if rows.has_segments:
            inputs["segment_ids"], targets["next"] = True, False
        super().__init__(inputs, targets, rows, order, max_length, few_shapes)
        self.masking = masking

    def _batch(self, drawn, more=0):
        generator = np.random.default_rng(drawn.seed)
        rows = [self.rows(*row, generator) for row in zip(drawn.shards, drawn.chunks)]
        lengths = np.array([sum(map(len, parts)) for parts, _ in rows])
        token_ids = np.zeros((len(rows), self.width(lengths.max())), "int64")
        segment_ids = np.zeros_like(token_ids)
        for row, segments, (parts, _) in zip(token_ids, segment_ids, rows, strict=True):
            start = 0
            for number, part in enumerate(parts):
                row[start : start + len(part)] = part
                segments[start : start + len(part)] = number
                start += len(part)
        masked, positions, targets = self.masking(token_ids, lengths, generator)
        inputs = {"token_ids": masked, "lengths": lengths, "masked_positions": positions}
        targets = {"masked": targets}
        if self.rows.has_segments:
            inputs["segment_ids"] = segment_ids
            targets["next"] = np.array([int(is_other) for _, is_other in rows])
        return inputs, targets


class EveryRow:
    """All rows of shards in their order, in batches; the last may be smaller.

    Args:
        counts, batch_size, seed: see `ShardOrder`.
        most: rows; of more, as many that are evenly spread.
    """

    def __init__(self, counts: Sequence[int] | np.ndarray, batch_size: int, seed: int, most: int):
        step = -(-sum(counts) // most)
        self.shards = np.repeat(np.arange(len(counts)), counts)[::step]
        self.chunks = np.concatenate([np.arange(count) for count in counts])[::step]
        self.batch_size, self.seed = batch_size, seed

    def from_step(self, step: int) -> Iterator[Drawn]:
        """Yield a `Drawn` for `step`, `step + 1`, up to the last batch."""
        for start in range(step * self.batch_size, len(self.shards), self.batch_size):
            rows = slice(start, start + self.batch_size)
            seed = [self.seed, start]
            yield Drawn(seed, self.shards[rows].tolist(), self.chunks[rows].tolist())
