"""Rows of a Transformer's pre-training, cut from documents anew at each pass.

    pairs            [CLS] A [SEP] B [SEP]; B goes on where A ends, or is of another document
    full sentences   [CLS] sentence sentence ... [SEP], with [SEP] between two documents
    of a document    sentence sentence ..., which a denoising model restores

The sentences of a document stand in chunks that fill a row, each sentence in one chunk. A pass
draws for each chunk: A, some of its first sentences; whether B is what follows (half of all pairs)
or begins with a sentence of another document; and for one in ten a length between 2 and the row's.
B goes on until the row is full, or its document ends. So sentences after an A with another B are
left out for a pass. Sentences of more than half a row are cut into parts.

Differs from the paper's code: there the pairs are drawn once, ten times over, with their masks; and
chunks begin where the last pair ended.

Reference: Devlin et al. 2019, section 3.1, task 2, and appendix A.2,
https://arxiv.org/abs/1810.04805; full sentences: Liu et al. 2019, section 4.2,
https://arxiv.org/abs/1907.11692
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from seqkeras.data.token_records import ShardTokens

CACHED = 2  # shards whose chunks are kept


class SentencePairs:
    """Rows [CLS] A [SEP] B [SEP] of shards.

    Args:
        shards: list of `seqkeras.data.token_records.ShardTokens`.
        max_length: most tokens of a row, with special tokens.
        start_id, end_id: ids of [CLS] and [SEP].
        short: share of rows of a random length.

    Attributes:
        counts: (shards,) rows of each shard.
        follow: share of rows whose second text goes on with the first, at most half.

    Raises:
        ValueError: if there is one document only, or max_length is under 5.
    """

    num_special, has_segments = 3, True

    def __init__(
        self,
        shards: Sequence[ShardTokens],
        max_length: int,
        start_id: int,
        end_id: int,
        short: float = 0.1,
    ):
        if max_length < 5:
            raise ValueError(
                f"SentencePairs: max_length must be at least 5; received {max_length}."
            )
        self.documents = np.cumsum([0, *(shard.num_documents for shard in shards)])
        if self.documents[-1] < 2:
            raise ValueError(
                "SentencePairs: there must be two documents at least, so that the second text of a "
                f"pair can be of another one; received {self.documents[-1]}."
            )
        self.shards, self.short = shards, short
        self.start_id, self.end_id = start_id, end_id
        self.room = max_length - self.num_special
        self.chunks = functools.lru_cache(maxsize=CACHED)(self._chunks)
        all_chunks = [self._chunks(number) for number in range(len(shards))]
        self.counts = np.array([len(chunks) for chunks in all_chunks])
        alone = sum(int(np.sum(np.diff(chunks.starts) == 1)) for chunks in all_chunks) / sum(
            self.counts
        )
        # A sentence that is alone in its chunk is followed by nothing.
        self.follow = min(0.5, 1 - alone)
        self.follows = self.follow / (1 - alone) if alone < 1 else 0.0  # of the rows that can

    def _chunks(self, number):
        shard = self.shards[number]
        return Chunks.within_documents(shard, self.room, max(self.room // 2, 1))

    def __call__(self, shard: int, chunk: int, generator: np.random.Generator) -> Any:
        """Return a row of a chunk.

        Args:
            shard, chunk: their numbers.
            generator: a `numpy.random.Generator`.

        Returns:
            Its parts, a list of two arrays of token ids with special tokens, and whether the second
            is of another document.
        """
        chunks, tokens = self.chunks(shard), self.shards[shard].tokens
        first, last = chunks.starts[chunk], chunks.starts[chunk + 1]
        token, room = chunks.bounds[first], self.room
        if generator.random() < self.short:
            room = generator.integers(2, self.room + 1)
        follows = last - first > 1 and generator.random() < self.follows
        middle = chunks.bounds[generator.integers(first + 1, max(last, first + 2))]
        middle = min(middle, token + room - 1)
        left = token + room - middle
        if follows:
            second = tokens[middle : min(middle + left, chunks.document_end(token))]
        else:
            second = self._of_another(shard, token, left, generator)
        parts = [self.start_id], tokens[token:middle], [self.end_id]
        return [np.concatenate(parts), np.concatenate([second, [self.end_id]])], not follows

    def _of_another(self, shard, token, room, generator):
        """Return sentences of another document than a token's, with `room` tokens at most."""
        ends = self.shards[shard].sentences[self.shards[shard].documents]
        excluded = self.documents[shard] + np.searchsorted(ends, token, side="right") - 1
        drawn = generator.integers(self.documents[-1] - 1)
        drawn += drawn >= excluded
        number = int(np.searchsorted(self.documents, drawn, side="right")) - 1
        other, document = self.shards[number], drawn - self.documents[number]
        first, last = other.documents[document : document + 2]
        start = other.sentences[generator.integers(first, last)]
        return other.tokens[start : min(start + room, other.sentences[last])]


class FullSentences:
    """Rows [CLS] sentences [SEP] of shards, that go on into the next document.

    Args: see `SentencePairs`; nothing is short.

    Attributes: see `SentencePairs`.
    """

    num_special, has_segments = 2, False

    def __init__(self, shards: Sequence[ShardTokens], max_length: int, start_id: int, end_id: int):
        if max_length < 3:
            raise ValueError(
                f"FullSentences: max_length must be at least 3; received {max_length}."
            )
        self.shards, self.start_id, self.end_id = shards, start_id, end_id
        self.room = max_length - self.num_special
        self.chunks = functools.lru_cache(maxsize=CACHED)(self._chunks)
        self.counts = np.array([len(self._chunks(number)) for number in range(len(shards))])

    def _chunks(self, number):
        return Chunks.across_documents(self.shards[number], self.room)

    def __call__(self, shard: int, chunk: int, generator: np.random.Generator) -> Any:
        """Return a row of a chunk: a list of one array, and False; nothing is drawn."""
        chunks, tokens = self.chunks(shard), self.shards[shard].tokens
        begin, end = chunks.bounds[chunks.starts[chunk : chunk + 2]]
        ends = chunks.document_ends
        within = ends[np.searchsorted(ends, begin, "right") : np.searchsorted(ends, end, "left")]
        row = np.insert(tokens[begin:end].astype("int64"), within - begin, self.end_id)
        return [np.concatenate([[self.start_id], row[: self.room], [self.end_id]])], False


class DocumentSentences:
    """Rows of sentences of one document each, as many as there is room for.

    Args:
        shards: see `SentencePairs`.
        room: most tokens of a row; longer sentences are cut into parts.

    Attributes:
        counts: see `SentencePairs`.

    Raises:
        ValueError: if there is no room.
    """

    def __init__(self, shards: Sequence[ShardTokens], room: int):
        if room < 1:
            raise ValueError(f"DocumentSentences: room must be at least 1; received {room}.")
        self.shards, self.room = shards, room
        self.chunks = functools.lru_cache(maxsize=CACHED)(self._chunks)
        self.counts = np.array([len(self._chunks(number)) for number in range(len(shards))])

    def _chunks(self, number):
        return Chunks.within_documents(self.shards[number], self.room, self.room)

    def __call__(self, shard: int, chunk: int) -> list[np.ndarray]:
        """Return the sentences of a row, arrays of token ids."""
        chunks, tokens = self.chunks(shard), self.shards[shard].tokens
        first, last = chunks.starts[chunk : chunk + 2]
        bounds = chunks.bounds[first : last + 1]
        return [tokens[begin:end].astype("int64") for begin, end in zip(bounds, bounds[1:])]


class Chunks:
    """The sentences of a shard in chunks.

    Args:
        bounds: (sentences + 1,) where each begins in the tokens, and the end.
        starts: (chunks + 1,) where each begins in `bounds`.
        document_ends: (documents,) where each ends in the tokens.
    """

    def __init__(self, bounds: np.ndarray, starts: np.ndarray, document_ends: np.ndarray):
        self.bounds, self.starts, self.document_ends = bounds, starts, document_ends

    def __len__(self) -> int:
        return len(self.starts) - 1

    def document_end(self, token: int) -> int:
        """Return where the document of a token ends."""
        return self.document_ends[np.searchsorted(self.document_ends, token, side="right")]

    @classmethod
    def within_documents(cls, shard: ShardTokens, room: int, longest: int) -> Self:
        """Return chunks of at most `room` tokens that end with their document; sentences of more
        than `longest` are cut."""
        bounds = _with_parts(shard.sentences, longest)
        ends = shard.sentences[shard.documents[1:]]
        last = np.searchsorted(bounds, ends)  # of each document, in bounds
        most = last[np.searchsorted(last, np.arange(len(bounds) - 1), side="right")]
        return cls(bounds, _starts(bounds, room, most), ends)

    @classmethod
    def across_documents(cls, shard: ShardTokens, room: int) -> Self:
        """Return chunks of at most `room` tokens, with one for the end of each document within."""
        bounds = _with_parts(shard.sentences, room)
        ends = shard.sentences[shard.documents[1:]]
        cost = bounds + np.searchsorted(ends, bounds, side="right")
        return cls(bounds, _starts(cost, room, len(bounds) - 1), ends)


def _with_parts(sentences, longest):
    """Return the bounds of sentences, those over a length cut into parts of about one length."""
    lengths = np.diff(sentences)
    parts = -(-lengths // longest)
    first = np.repeat(np.cumsum(parts) - parts, parts)
    number = np.arange(len(first)) - first
    lengths, count = np.repeat(lengths, parts), np.repeat(parts, parts)
    starts = np.repeat(sentences[:-1], parts) + number * lengths // np.maximum(count, 1)
    return np.append(starts, sentences[-1])


def _starts(cost, room, most):
    """Return where the chunks begin: each takes sentences while they cost no more than the room."""
    count = len(cost) - 1
    following = np.searchsorted(cost, cost[:-1] + room, side="right") - 1
    following = np.minimum(np.maximum(following, np.arange(count) + 1), most).tolist()
    starts = [0]
    while starts[-1] < count:
        starts.append(following[starts[-1]])
    return np.array(starts)
