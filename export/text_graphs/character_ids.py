"""A table of characters in a graph, as `serving.text.CharacterTable` reads and writes.

It can not compose: text that is not composed (NFC), which `serving` would compose, is refused.
"""

import functools
import sys
import unicodedata

import tensorflow as tf

from export.text_graphs.lookup import find
from export.text_graphs.tokens import Tokens
from serving.text.vocabularies import SPECIAL_TOKENS, UNK


class CharacterIds:
    """The tokenizer of a `CharacterTable`: a token for each character.

    Args:
        table: the `CharacterTable`.
    """

    def __init__(self, table):
        special = len(SPECIAL_TOKENS)
        known = enumerate(table.characters[special:], start=special)
        self._code_points, self._ids = zip(*sorted((ord(each), place) for place, each in known))
        self._characters = [""] * special + [*table.characters[special:]]

    def __call__(self, texts):
        """(B,) strings to `Tokens`; one that is not composed is an InvalidArgumentError."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="strict")
        code_points, rows = decoded.values, decoded.value_rowids()
        singles, pairs = _uncomposed()
        adjacent = tf.cast(code_points, tf.int64)
        adjacent = adjacent[:-1] * _PAIR + adjacent[1:]
        composes = find(pairs, adjacent)[0] & (rows[:-1] == rows[1:])
        check = tf.debugging.Assert(
            ~(tf.reduce_any(find(singles, code_points)[0]) | tf.reduce_any(composes)),
            ["text: must be composed (Unicode NFC), as unicodedata.normalize makes it."],
        )
        with tf.control_dependencies([check]):
            known, place = find(self._code_points, code_points)
        ids = tf.where(known, tf.gather(self._ids, place), UNK)
        places = tf.range(tf.size(ids)) - tf.cast(tf.gather(decoded.row_splits, rows), tf.int32)
        return Tokens(*map(decoded.with_values, (ids, places, places + 1)))

    def decode(self, token_ids, kept):
        """(B, T) ids to (B,) strings, of those that are kept; special tokens have no text."""
        characters = tf.where(kept, tf.gather(tf.constant(self._characters), token_ids), "")
        return tf.strings.reduce_join(characters, axis=-1)


_PAIR = 2**21  # more than any code point: a pair of them as one number


@functools.cache
def _uncomposed():
    """What NFC would change: single code points, and pairs that it composes, both ascending.

    A mark that composes with a letter further back than its neighbour is not seen.
    """
    singles, pairs = [], []
    for code_point in range(sys.maxunicode + 1):
        character = chr(code_point)
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed == character:
            continue
        if unicodedata.normalize("NFC", character) != character:
            singles.append(code_point)
            continue
        *others, last = decomposed
        # The last step of the composition: all but the last code point compose to one.
        composed = unicodedata.normalize("NFC", "".join(others))
        if len(composed) == 1:
            pairs.append(ord(composed) * _PAIR + ord(last))
    return sorted(singles), sorted(set(pairs))
