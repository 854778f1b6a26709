"""A table of characters in a graph, with the ids and texts of `serving.text.CharacterTable`."""

from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from seqkeras.export.text_graphs.lookup import find
from seqkeras.export.text_graphs.row_errors import none_of
from seqkeras.export.text_graphs.tokens import TextGraph, Tokens
from seqkeras.serving.text import CharacterTable
from seqkeras.serving.text.vocabularies import SPECIAL_TOKENS, UNK


class CharacterIds(TextGraph):
    """The tokenizer of a `CharacterTable`: a token for each character.

    Texts are composed first (Unicode NFC); offsets are those in the composed text.
    """

    def __init__(self, table: CharacterTable):
        special = len(SPECIAL_TOKENS)
        known = enumerate(table.characters[special:], start=special)
        self._code_points, self._ids = zip(*sorted((ord(char), index) for index, char in known))
        self.pieces = [""] * special + [*table.characters[special:]]

    def split(self, texts: Any) -> Tokens:
        decoded = tf.strings.unicode_decode(tf_text.normalize_utf8(texts, "NFC"), "UTF-8")
        known, index = find(self._code_points, decoded.values)
        ids = tf.where(known, tf.gather(self._ids, index), UNK)
        places = tf.ragged.range(decoded.row_lengths()).values
        places = tf.cast(places, tf.int32)
        return Tokens(*map(decoded.with_values, (ids, places, places + 1)), none_of(texts))
