"""The words of Keras's `TextVectorization` in a graph, as in `serving.text.VectorizedWords`."""

import re
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from seqkeras.export.text_graphs.characters import in_code_points
from seqkeras.export.text_graphs.lookup import StringTable
from seqkeras.export.text_graphs.row_errors import none_of
from seqkeras.export.text_graphs.tokens import TextGraph, Tokens
from seqkeras.serving.text import VectorizedWords
from seqkeras.serving.text.vectorized_words import PUNCTUATION, SPACES
from seqkeras.serving.text.vocabularies import PAD, UNK
from seqkeras.tensors import Tensor

BETWEEN = f"[{re.escape(SPACES)}]+"
NUL = r"\x00"
SIGNS = f"[{re.escape(PUNCTUATION)}]"


class WordIds(TextGraph):
    """The tokenizer of a `VectorizedWords`: a token for each word."""

    def __init__(self, table: VectorizedWords):
        special = len(table.special_tokens)
        known = enumerate(table.words[special:], start=special)
        self._ids = StringTable({word: token_id for token_id, word in known}, UNK)
        self._lowercase, self._strips = table.lowercase, table.strips
        self.pieces = [f" {word}" for word in table.words]

    def split(self, texts: Any) -> Tokens:
        texts = tf.strings.regex_replace(texts, NUL, "\x01")  # the kernel ends a text at NUL
        parts = tf_text.regex_split_with_offsets(texts, BETWEEN)
        rows, (words, starts, ends) = parts[0], (ragged.values for ragged in parts)
        if self._strips:
            starts += _length(words) - _length(tf.strings.regex_replace(words, f"^{SIGNS}+", ""))
            ends -= _length(words) - _length(tf.strings.regex_replace(words, f"{SIGNS}+$", ""))
            words = tf.strings.regex_replace(words, SIGNS, "")
        if self._lowercase:
            words = tf.strings.lower(words)
        words, starts, ends = (
            tf.ragged.boolean_mask(rows.with_values(values), rows.with_values(words != ""))
            for values in (words, starts, ends)
        )
        ids = words.with_values(self._ids(words.values))
        return Tokens(ids, *in_code_points(texts, starts, ends), none_of(texts))

    def decode(self, token_ids: Tensor, kept: Tensor) -> Tensor:
        return super().decode(token_ids, kept & (token_ids != PAD))

    def tidied(self, joined: Tensor) -> Tensor:
        return tf.strings.regex_replace(joined, "^ ", "")


def _length(strings):
    return tf.cast(tf.strings.length(strings), tf.int64)
