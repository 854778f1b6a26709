"""Texts to the token ids of a model, with the special tokens of its template."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from typing import TYPE_CHECKING

import tensorflow as tf

from seqkeras.export.text_graphs.byte_pairs import BytePairs
from seqkeras.export.text_graphs.character_ids import CharacterIds
from seqkeras.export.text_graphs.characters import require
from seqkeras.export.text_graphs.requirements import require_decoder
from seqkeras.export.text_graphs.row_errors import errors_of, first_of
from seqkeras.export.text_graphs.sentence_pieces import Pieces
from seqkeras.export.text_graphs.tokens import Tokens
from seqkeras.export.text_graphs.vectorized_words import WordIds
from seqkeras.export.text_graphs.word_piece import WordPiece
from seqkeras.serving.text import (
    CharacterTable,
    SentencePieces,
    Subwords,
    VectorizedWords,
    WordTable,
)

if TYPE_CHECKING:
    from seqkeras.export.text_graphs.characters import Texts
    from seqkeras.export.text_graphs.tokens import TextGraph
    from seqkeras.serving.text import Tokenizer
    from seqkeras.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class EncodedTexts:
    """The inputs of a model for texts, padded on the right."""

    token_ids: tf.Tensor  # (B, T) int64
    lengths: tf.Tensor  # (B,) int64
    segment_ids: tf.Tensor  # (B, T) int64
    starts: tf.Tensor  # (B, T) int32, offset in the text; -1 for special tokens and padding
    ends: tf.Tensor  # (B, T) int32, likewise
    texts: tf.Tensor  # (B, T) int32, the index of the token's text; -1 likewise
    errors: tf.Tensor  # (B,) strings, why a row is refused; "" for the others
    masked_positions: tf.Tensor | None = None  # (B, M) int64; None if they are unknown

    @classmethod
    def of_rows(cls, rows: Tensor, errors: Tensor) -> EncodedTexts:
        """Return encoded texts from the ragged rows of `_joined`; a refused one is a token 0."""
        token_ids, segment_ids, *places = rows
        token_ids, lengths = padded(token_ids, errors)
        return cls(
            tf.cast(token_ids, tf.int64),
            lengths,
            tf.cast(padded(segment_ids, errors)[0], tf.int64),
            *(padded(column, errors, -1)[0] for column in places),
            errors,
        )

    @property
    def padding_mask(self) -> Tensor:
        """(B, T) bool, which tokens are real."""
        return tf.sequence_mask(self.lengths, tf.shape(self.token_ids)[-1])

    def inputs(self, names: Collection[str]) -> dict[str, Tensor]:
        """Return a dictionary: name -> tensor, of a model's inputs.

        A head may need the masked positions; if they are unknown, it gets the first position of
            each row.
        """
        masked = self.masked_positions
        masked = tf.zeros_like(self.token_ids[:, :1]) if masked is None else masked
        known = dataclasses.replace(self, masked_positions=masked)
        return {name: getattr(known, name) for name in names}

    def grouped(self, shape: Tensor) -> EncodedTexts:
        """Return the rows as groups of rows, (B, C, ...)."""
        return EncodedTexts(
            **{
                name: tf.reshape(value, tf.concat([shape, tf.shape(value)[1:]], axis=0))
                for name, value in vars(self).items()
                if value is not None
            }
        )


def padded(rows: Tensor, errors: Tensor, padding: int = 0) -> tuple[Tensor, Tensor]:
    """Map ragged (B, None) rows to (B, T), and their lengths; a refused row is one padding."""
    well = errors == ""

    def plain():
        return rows.to_tensor(padding), rows.row_lengths()

    def with_refused():
        lengths = tf.where(well, rows.row_lengths(), 1)
        wide = tf.pad(rows.to_tensor(padding), [[0, 0], [0, 1]], constant_values=padding)
        filled = tf.where(well[:, None], wide, tf.constant(padding, wide.dtype))
        return filled[:, : tf.reduce_max(lengths)], lengths

    return tf.cond(tf.reduce_all(well), plain, with_refused)


class Reader:
    """A tokenizer of `seqkeras.serving.text` in a graph.

    Args:
        limit: the most tokens of an input, special ones too.
        end_id: id of a last special token to leave out, as for a prompt; None to keep all.
        empty: whether texts without a token are allowed.
    """

    def __init__(
        self, tokenizer: Tokenizer, limit: int, end_id: int | None = None, empty: bool = False
    ):
        self._tokenizer, self.limit, self._end_id, self._empty = tokenizer, limit, end_id, empty
        self._tokenize = in_graph(tokenizer)
        self.takes_pairs = isinstance(tokenizer, Subwords)
        units = {CharacterTable: "characters", VectorizedWords: "words"}
        self._unit = units.get(type(tokenizer), "tokens")

    def __call__(
        self, *texts: Texts, truncate: Tensor, most_of_first: int | None = None
    ) -> EncodedTexts:
        """Map `Texts`, one or two, to `EncodedTexts`.

        Args:
            truncate: a scalar boolean: whether texts over the limit are cut, as
                `seqkeras.serving.text` does it: of two the longer one.
            most_of_first: of two texts, the most tokens of the first, which alone is cut, or None.
        """
        if len(texts) == 2:
            same = tf.size(texts[0].values) == tf.size(texts[1].values)
            message = f"{texts[1].name}: must be as many as {texts[0].name}."
            values = require(texts[0].values, (same, message))
            texts = dataclasses.replace(texts[0], values=values), texts[1]
        parts = [self._tokens(text) for text in texts]
        around, segments = self._template(len(parts) == 2)
        room = self.limit - sum(map(len, around))

        def cut():
            sizes = [part.token_ids.row_lengths() for part in parts]
            if most_of_first is None:
                sizes = _fitting(sizes, room)
            else:
                sizes = [tf.minimum(sizes[0], most_of_first), sizes[1]]
            return [part.cut(size).columns for part, size in zip(parts, sizes, strict=True)]

        columns = tf.cond(truncate, cut, lambda: [part.columns for part in parts])
        parts = [Tokens(*triple, part.errors) for triple, part in zip(columns, parts, strict=True)]
        rows, name = (
            _joined(parts, around, segments),
            " and ".join(dict.fromkeys(e.name for e in texts)),
        )
        errors = first_of(*(part.errors for part in parts))
        if most_of_first is not None:
            length = parts[0].token_ids.row_lengths()
            errors = first_of(errors, self.over(length, texts[0].name, most_of_first))
        errors = first_of(errors, self.over(rows[0].row_lengths(), name))
        return EncodedTexts.of_rows(rows, errors)

    def prompt_ids(self, text: Texts) -> tuple[Tensor, Tensor]:
        """Map `Texts` to ragged (B, None) ids of any length, and their errors."""
        part = self._tokens(text)
        return _joined([part], *self._template(False))[0], part.errors

    def over(self, lengths: Tensor, name: str = "text", limit: int | None = None) -> Tensor:
        """Return (B,) errors of those lengths that are over the limit."""
        limit = limit or self.limit
        return errors_of(
            (lengths <= limit, f"{name}: at most {limit} {self._unit}; nothing was truncated.")
        )

    def _tokens(self, text):
        """Return the `Tokens` of `Texts`, with errors of those far too long or without a token."""
        name, errors = text.name, text.errors
        if self._tokenize.most_characters is not None:
            most = self._tokenize.most_characters * self.limit
            fits = tf.strings.length(text.values, unit="UTF8_CHAR") <= most
            message = f"{name}: at most {most} characters for {self.limit} tokens."
            errors = first_of(errors, errors_of((fits, message)))
        tokens = self._tokenize(tf.where(errors == "", text.values, ""))
        errors = first_of(errors, tokens.errors)
        if not self._empty:
            some = tokens.token_ids.row_lengths() > 0
            errors = first_of(errors, errors_of((some, f"{name}: has no token.")))
        return dataclasses.replace(tokens, errors=errors)

    def _template(self, pair):
        """Return the special tokens around texts, and the segment of each text.

        The former are lists of (id, segment, -1, -1, -1), before each text and after the last.
        """
        if not isinstance(self._tokenizer, Subwords | SentencePieces):
            return [[], []], [0]
        encoding = self._tokenizer.analyze(*(["a", "a"] if pair else ["a"]))
        size = len(self._tokenizer.encode("a"))  # tokens of a text
        around, segments, count = [[]], [], 0
        for token_id, offset, segment in zip(
            encoding.token_ids, encoding.offsets, encoding.segment_ids, strict=True
        ):
            if offset is None:
                around[-1].append((token_id, segment, -1, -1, -1))
                continue
            if count % size == 0:
                around.append([])
                segments.append(segment)
            count += 1
        last = around[-1]
        if last and last[-1][0] == self._end_id:
            last.pop()
        return around, segments


def _fitting(sizes, room):
    """Return how many tokens to keep of one or two texts; see
    `seqkeras.serving.text.encoding.fit`."""
    if len(sizes) == 1:
        return [tf.minimum(sizes[0], room)]
    first = tf.minimum(sizes[0], tf.maximum(tf.cast(room - room // 2, tf.int64), room - sizes[1]))
    return [first, tf.minimum(sizes[1], room - first)]


def _joined(parts, specials, segments):
    """Return the token ids, segments, starts, ends and texts of texts with their special tokens.

    Each is ragged (B, None) int32.
    """
    batch, columns = parts[0].token_ids.nrows(), []
    for number, part in enumerate([*parts, None]):
        if specials[number]:
            rows = [tf.constant([values], tf.int32) for values in zip(*specials[number])]
            columns.append([tf.RaggedTensor.from_tensor(tf.tile(r, [batch, 1])) for r in rows])
        if part:
            nothing = tf.zeros_like(part.token_ids)
            segment = nothing + segments[number]
            columns.append((part.token_ids, segment, part.starts, part.ends, nothing + number))
    return [tf.concat(column, axis=1) for column in zip(*columns, strict=True)]


def in_graph(tokenizer: Tokenizer) -> TextGraph:
    """Return the tokenizer in a graph, a `TextGraph`; a ValueError says why there can be none."""
    if isinstance(tokenizer, CharacterTable):
        return CharacterIds(tokenizer)
    if isinstance(tokenizer, SentencePieces):
        return Pieces(tokenizer)
    if isinstance(tokenizer, VectorizedWords):
        return WordIds(tokenizer)
    if isinstance(tokenizer, WordTable):
        raise ValueError(
            "text graph: a WordTable splits words by rules that no graph here knows; one that "
            "from_text_vectorization makes is split at white space."
        )
    content = json.loads(tokenizer.to_json())
    kind = content["model"].get("type")
    if kind not in ("WordPiece", "BPE"):
        raise ValueError(f"text graph: a tokenizer must be WordPiece or BPE; it is {kind}.")
    return WordPiece(content) if kind == "WordPiece" else BytePairs(content)


def writer(tokenizer: Tokenizer) -> TextGraph:
    """Return the tokenizer in a graph, to join tokens to texts again."""
    graph = in_graph(tokenizer)
    if isinstance(tokenizer, Subwords):
        require_decoder(json.loads(tokenizer.to_json()))
    if isinstance(tokenizer, SentencePieces) and tokenizer.byte_ids:
        raise ValueError(
            "text graph: a SentencePiece model that writes texts must have no pieces for bytes."
        )
    return graph
