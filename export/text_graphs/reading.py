"""Texts to the token ids of a model, with the tokens that a template sets around them."""

import dataclasses
import json

import tensorflow as tf

from export.text_graphs.byte_pairs import BytePairs
from export.text_graphs.character_ids import CharacterIds
from export.text_graphs.sentence_pieces import Pieces
from export.text_graphs.word_piece import WordPiece
from serving.text import CharacterTable, SentencePieces, Subwords


@dataclasses.dataclass(frozen=True)
class Read:
    """Texts as a model reads them, padded on the right.

    Attributes:
        token_ids: (B, T) int64.
        lengths: (B,) int64.
        segment_ids: (B, T) int64.
        starts, ends: (B, T) int32, where each token lies in its own text; -1 for special tokens
            and padding, which lie nowhere.
        masked_positions: (B, M) int64, which tokens are masked; None: nobody knows.
    """

    token_ids: tf.Tensor
    lengths: tf.Tensor
    segment_ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    masked_positions: tf.Tensor | None = None

    def inputs(self, names):
        """name -> tensor, of a model's inputs.

        One of several heads may ask which tokens are masked: where nobody knows, the first of each.
        """
        masked = self.masked_positions
        masked = tf.zeros_like(self.token_ids[:, :1]) if masked is None else masked
        known = dataclasses.replace(self, masked_positions=masked)
        return {name: getattr(known, name) for name in names}

    def grouped(self, shape):
        """The rows as groups of rows, (B, C, ...)."""
        return Read(
            **{
                name: tf.reshape(value, tf.concat([shape, tf.shape(value)[1:]], axis=0))
                for name, value in vars(self).items()
                if value is not None
            }
        )


MOST_CHARACTERS = 128  # of a text for every token that there may be: no text of words has more


class Reader:
    """A tokenizer of `serving.text` in a graph.

    Args:
        tokenizer: `Subwords`, `SentencePieces` or `CharacterTable`.
        limit: the most tokens of an input, special ones too.
        end_id: None, or the id of a last special token that is left out, as of a prompt.

    Raises:
        ValueError: if it can not be put into a graph.
    """

    def __init__(self, tokenizer, limit, end_id=None):
        self._tokenizer, self.limit, self._end_id = tokenizer, limit, end_id
        self.tokenize = in_graph(tokenizer)
        self._of_characters = isinstance(tokenizer, CharacterTable)

    def __call__(self, *texts):
        """(B,) texts, or two of them, to `Read`; one over the limit is an InvalidArgumentError."""
        parts = [self.tokenize(self._short_enough(each)) for each in texts]
        around = self._around(pair=len(texts) == 2)
        columns = []
        batch = parts[0].token_ids.nrows()
        for part in around:
            if isinstance(part, int):
                tokens = parts[part]
                segments = tf.zeros_like(tokens.token_ids) + part * self._second_segment
                columns.append((tokens.token_ids, segments, tokens.starts, tokens.ends))
            elif part:
                columns.append([_repeated(batch, each) for each in zip(*part, strict=True)])
        ids, segments, starts, ends = (tf.concat(each, axis=1) for each in zip(*columns))
        lengths = ids.row_lengths()
        fits = tf.reduce_all(lengths <= self.limit)
        unit = "characters" if self._of_characters else "tokens"
        message = f"text: at most {self.limit} {unit}; nothing was truncated."
        with tf.control_dependencies([tf.debugging.Assert(fits, [message])]):
            lengths = tf.identity(lengths)
        return Read(
            tf.cast(ids.to_tensor(), tf.int64),
            lengths,
            tf.cast(segments.to_tensor(), tf.int64),
            starts.to_tensor(-1),
            ends.to_tensor(-1),
        )

    def _short_enough(self, texts):
        """The texts, none of which is hopelessly long, so that no time is spent on it."""
        if self._of_characters:
            return texts
        most = MOST_CHARACTERS * self.limit
        fits = tf.reduce_all(tf.strings.length(texts, unit="UTF8_CHAR") <= most)
        message = f"text: at most {most} characters for {self.limit} tokens."
        with tf.control_dependencies([tf.debugging.Assert(fits, [message])]):
            return tf.identity(texts)

    def _around(self, pair):
        """The special tokens (id, segment, -1, -1) and, between them, which text is there."""
        self._second_segment = 0
        if self._of_characters:
            return [[], 0, []]
        encoding = self._tokenizer.analyze(*(["a", "a"] if pair else ["a"]))
        around, text, inside = [[]], 0, False
        for token_id, place, segment in zip(
            encoding.token_ids, encoding.offsets, encoding.segment_ids, strict=True
        ):
            if place is None:
                around[-1].append((token_id, segment, -1, -1))
                inside = False
            elif not inside:
                around += [text, []]
                self._second_segment = segment
                text, inside = text + 1, True
        last = around[-1]
        if last and last[-1][0] == self._end_id:
            last.pop()
        return around


def _repeated(batch, values):
    """Ragged (B, n): the values in each row."""
    rows = tf.tile(tf.constant([values], tf.int32), [batch, 1])
    return tf.RaggedTensor.from_tensor(rows)


def in_graph(tokenizer):
    """The tokenizer in a graph: (B,) strings to `Tokens`, and `decode` back.

    Raises:
        ValueError: if it can not be put into a graph.
    """
    if isinstance(tokenizer, CharacterTable):
        return CharacterIds(tokenizer)
    if isinstance(tokenizer, SentencePieces):
        return Pieces(tokenizer)
    if not isinstance(tokenizer, Subwords):
        raise ValueError(
            "text graph: a tokenizer must be one of subwords or characters; it is a "
            f"{type(tokenizer).__name__}."
        )
    content = json.loads(tokenizer.to_json())
    kind = content["model"].get("type")
    if kind not in ("WordPiece", "BPE"):
        raise ValueError(f"text graph: a tokenizer must be WordPiece or BPE; it is {kind}.")
    return WordPiece(content) if kind == "WordPiece" else BytePairs(content)
