"""Texts to the token ids of a model, with the special tokens of its template."""

import dataclasses
import json

import tensorflow as tf

from export.text_graphs.byte_pairs import BytePairs
from export.text_graphs.character_ids import CharacterIds
from export.text_graphs.characters import require
from export.text_graphs.requirements import require_decoder
from export.text_graphs.sentence_pieces import Pieces
from export.text_graphs.vectorized_words import WordIds
from export.text_graphs.word_piece import WordPiece
from serving.text import CharacterTable, SentencePieces, Subwords, VectorizedWords, WordTable


@dataclasses.dataclass(frozen=True)
class EncodedTexts:
    """The inputs of a model for texts, padded on the right.

    Attributes:
        token_ids: (B, T) int64.
        lengths: (B,) int64.
        segment_ids: (B, T) int64.
        starts, ends: (B, T) int32, offsets in the token's own text; -1 for special tokens and
            padding.
        masked_positions: (B, M) int64, which tokens are masked; None if unknown.
    """

    token_ids: tf.Tensor
    lengths: tf.Tensor
    segment_ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    masked_positions: tf.Tensor | None = None

    @property
    def padding_mask(self):
        """(B, T) bool, which tokens are real."""
        return tf.sequence_mask(self.lengths, tf.shape(self.token_ids)[-1])

    def inputs(self, names):
        """name -> tensor, of a model's inputs.

        A head may need the masked positions; if they are unknown, it gets the first position of
            each row.
        """
        masked = self.masked_positions
        masked = tf.zeros_like(self.token_ids[:, :1]) if masked is None else masked
        known = dataclasses.replace(self, masked_positions=masked)
        return {name: getattr(known, name) for name in names}

    def grouped(self, shape):
        """The rows as groups of rows, (B, C, ...)."""
        return EncodedTexts(
            **{
                name: tf.reshape(value, tf.concat([shape, tf.shape(value)[1:]], axis=0))
                for name, value in vars(self).items()
                if value is not None
            }
        )


@dataclasses.dataclass(frozen=True)
class _Template:
    """The special tokens around texts.

    Attributes:
        around: lists of (id, segment, -1, -1), before each text and after the last.
        segments: of each text.
    """

    around: list
    segments: list


class Reader:
    """A tokenizer of `serving.text` in a graph.

    Args:
        tokenizer: `Subwords`, `SentencePieces`, `CharacterTable` or `VectorizedWords`.
        limit: the most tokens of an input, special ones too.
        end_id: id of a last special token to leave out, as for a prompt; None to keep all.
        empty: whether texts without a token are allowed.

    Raises:
        ValueError: if it can not be put into a graph.
    """

    def __init__(self, tokenizer, limit, end_id=None, empty=False):
        self._tokenizer, self.limit, self._end_id, self._empty = tokenizer, limit, end_id, empty
        self.tokenize = in_graph(tokenizer)
        self.takes_pairs = isinstance(tokenizer, Subwords)
        units = {CharacterTable: "characters", VectorizedWords: "words"}
        self._unit = units.get(type(tokenizer), "tokens")

    def __call__(self, *texts, names=("text", "text")):
        """(B,) texts, or two such tensors, to `EncodedTexts`.

        Args:
            texts: as `checked` lets them through.
            names: of the inputs, for errors.

        Returns:
            `EncodedTexts`; the graph raises an InvalidArgumentError for texts that it refuses.
        """
        names = names[: len(texts)]
        if len(texts) == 2:
            same = tf.size(texts[0]) == tf.size(texts[1])
            texts = (
                require(texts[0], (same, f"{names[1]}: must be as many as {names[0]}.")),
                texts[1],
            )
        parts = [self._tokens(*text_and_name) for text_and_name in zip(texts, names)]
        template, columns = self._template(len(parts) == 2), []
        for number, part in enumerate([*parts, None]):
            around = template.around[number]
            if around:
                batch = parts[0].token_ids.nrows()
                columns.append([_repeated(batch, values) for values in zip(*around, strict=True)])
            if part:
                segments = tf.zeros_like(part.token_ids) + template.segments[number]
                columns.append((part.token_ids, segments, part.starts, part.ends))
        ids, segments, starts, ends = (tf.concat(column, axis=1) for column in zip(*columns))
        return EncodedTexts(
            tf.cast(ids.to_tensor(), tf.int64),
            self.fitting(ids.row_lengths(), " and ".join(dict.fromkeys(names))),
            tf.cast(segments.to_tensor(), tf.int64),
            starts.to_tensor(-1),
            ends.to_tensor(-1),
        )

    def fitting(self, lengths, name="text"):
        """(B,) lengths, checked against the limit."""
        message = f"{name}: at most {self.limit} {self._unit}; nothing was truncated."
        return require(lengths, (lengths <= self.limit, message))

    def _tokens(self, texts, name):
        """The `Tokens` of texts, after checks: not far too long, and not without a token."""
        if self.tokenize.most_characters is not None:
            most = self.tokenize.most_characters * self.limit
            fits = tf.strings.length(texts, unit="UTF8_CHAR") <= most
            message = f"{name}: at most {most} characters for {self.limit} tokens."
            texts = require(texts, (fits, message))
        tokens = self.tokenize(texts)
        if self._empty:
            return tokens
        some = tokens.token_ids.row_lengths() > 0
        values = require(tokens.token_ids.values, (some, f"{name}: has no token."))
        return dataclasses.replace(tokens, token_ids=tokens.token_ids.with_values(values))

    def _template(self, pair):
        if not isinstance(self._tokenizer, Subwords | SentencePieces):
            return _Template([[], []], [0])
        encoding = self._tokenizer.analyze(*(["a", "a"] if pair else ["a"]))
        size = len(self._tokenizer.encode("a"))  # tokens of a text
        around, segments, count = [[]], [], 0
        for token_id, place, segment in zip(
            encoding.token_ids, encoding.offsets, encoding.segment_ids, strict=True
        ):
            if place is None:
                around[-1].append((token_id, segment, -1, -1))
                continue
            if count % size == 0:
                around.append([])
                segments.append(segment)
            count += 1
        last = around[-1]
        if last and last[-1][0] == self._end_id:
            last.pop()
        return _Template(around, segments)


def _repeated(batch, values):
    """Ragged (B, n): the values in each row."""
    rows = tf.tile(tf.constant([values], tf.int32), [batch, 1])
    return tf.RaggedTensor.from_tensor(rows)


def in_graph(tokenizer):
    """The tokenizer in a graph, a `TextGraph`.

    Raises:
        ValueError: if it can not be put into a graph.
    """
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


def writer(tokenizer):
    """The tokenizer in a graph, to join tokens to texts again.

    Raises:
        ValueError: if it can not be put into a graph.
    """
    graph = in_graph(tokenizer)
    if isinstance(tokenizer, Subwords):
        require_decoder(json.loads(tokenizer.to_json()))
    if isinstance(tokenizer, SentencePieces) and tokenizer.byte_ids:
        raise ValueError(
            "text graph: a SentencePiece model that writes texts must have no pieces for bytes."
        )
    return graph
