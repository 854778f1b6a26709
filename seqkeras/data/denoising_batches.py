"""Batches of damaged rows, drawn anew for every batch, as a function of the seed and the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras.data.batches import Sequences
from seqkeras.data.masking import IGNORED
from seqkeras.data.pretraining import Drawn, EveryRow, RowBatches, ShardOrder
from seqkeras.serving.text import Subwords, pad
from seqkeras.serving.text.encoding import Encoding

if TYPE_CHECKING:
    from seqkeras.data.denoising import Damaged


class Frame(NamedTuple):
    """Tokens around a source, and around a target."""

    prefix: list[int]
    suffix: list[int]
    start_id: int
    end_id: int

    @classmethod
    def of(cls, tokenizer: Subwords, start_id: int, end_id: int) -> Frame:
        """Return the frame of the sources that a tokenizer makes of texts."""
        encoding: Encoding = tokenizer.analyze("a")
        real = [index for index, offset in enumerate(encoding.offsets) if offset is not None]
        ids = encoding.token_ids
        return cls(ids[: real[0]], ids[real[-1] + 1 :], start_id, end_id)

    def room(self, max_length: int) -> int:
        """Return the most tokens of a text, of which source and target have at most max_length: a
        target may have a token more, and its end."""
        return max_length - max(len(self.prefix) + len(self.suffix), 2)

    def arrays(
        self, sources: list[list[int]], targets: list[list[int]], width: Callable[[int], int]
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the inputs and the targets of a batch.

        Args:
            sources: rows of token ids, with what stands around them.
            targets: rows of token ids.
            width: tokens of the longest row -> the tokens to which rows are padded.
        """
        lengths = np.array([len(source) for source in sources])
        given = [[self.start_id, *target] for target in targets]
        wanted = [[*target, self.end_id] for target in targets]
        of_targets = width(max(map(len, wanted)))
        inputs = {
            "token_ids": _padded(sources, width(int(lengths.max()))),
            "lengths": lengths,
            "target_ids": _padded(given, of_targets),
        }
        return inputs, _padded(wanted, of_targets, IGNORED)


class DenoisingBatches(RowBatches):
    """({"token_ids", "lengths", "target_ids"}, targets) of damaged rows; targets of -1 count
    nothing.

    Args:
        rows: a `seqkeras.data.sentence_pairs.DocumentSentences`.
        noise: (token_ids, lengths, generator=) -> `seqkeras.data.denoising.Damaged`.
        frame: a `Frame`, what stands around sources and targets.
        order, max_length, few_shapes: see `RowBatches`.
        shuffled: whether the sentences of a source are shuffled; the target is the text then.
    """

    def __init__(
        self,
        rows: Any,
        noise: Callable[..., Damaged],
        frame: Frame,
        order: ShardOrder | EveryRow,
        max_length: int,
        few_shapes: bool | None = None,
        shuffled: bool = False,
    ):
        inputs = {"token_ids": True, "lengths": False, "target_ids": True}
        super().__init__(inputs, True, rows, order, max_length, few_shapes)
        self.noise, self.frame, self.shuffled = noise, frame, shuffled

    def damaged(self, drawn: Drawn) -> tuple[list[list[int]], list[list[int]]]:
        """Return sources, with what stands around them, and targets, of the rows of a batch."""
        generator = np.random.default_rng(drawn.seed)
        rows = [self.rows(*row) for row in zip(drawn.shards, drawn.chunks)]
        texts, lengths = _joined(rows)
        if self.shuffled:
            mixed = [[row[at] for at in generator.permutation(len(row))] for row in rows]
            damaged = self.noise(_joined(mixed)[0], lengths, generator=generator)._replace(
                targets=texts
            )
        else:
            damaged = self.noise(texts, lengths, generator=generator)
        frame, room = self.frame, self.frame.room(self.max_length)
        sources = [
            [*frame.prefix, *source[: min(length, room)], *frame.suffix]
            for source, length in zip(damaged.sources.tolist(), damaged.source_lengths, strict=True)
        ]
        targets = zip(damaged.targets.tolist(), damaged.target_lengths, strict=True)
        return sources, [target[:length] for target, length in targets]

    def _batch(self, drawn, more=0):
        return self.frame.arrays(*self.damaged(drawn), self.width)


def _joined(rows: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the token ids of rows of sentences, and their lengths."""
    return pad([sum(map(np.ndarray.tolist, row), []) for row in rows])


def _padded(rows, width, padding=0):
    return Sequences(rows, width, padding).padded(np.arange(len(rows)))
