"""A table of characters in a graph, as `serving.text.CharacterTable` reads and writes.

It can not compose: text that is not composed (NFC), which `serving` would compose, is refused.
"""

import functools
import sys
import unicodedata

import numpy as np
import tensorflow as tf

from export.text_graphs.characters import require, shifted
from export.text_graphs.lookup import CODE_POINTS, CodePointTable, find
from export.text_graphs.tokens import TextGraph, Tokens
from serving.text.vocabularies import SPECIAL_TOKENS, UNK


class CharacterIds(TextGraph):
    """The tokenizer of a `CharacterTable`: a token for each character.

    Args:
        table: the `CharacterTable`.
    """

    def __init__(self, table):
        special = len(SPECIAL_TOKENS)
        known = enumerate(table.characters[special:], start=special)
        self._code_points, self._ids = zip(*sorted((ord(each), place) for place, each in known))
        self._characters = [""] * special + [*table.characters[special:]]

    def split(self, texts):
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="strict")
        rows = decoded.value_rowids()
        message = "text: must be composed (Unicode NFC), as unicodedata.normalize makes it."
        code_points = require(decoded.values, (~_changes(decoded.values, rows), message))
        known, place = find(self._code_points, code_points)
        ids = tf.where(known, tf.gather(self._ids, place), UNK)
        places = tf.range(tf.size(ids)) - tf.cast(tf.gather(decoded.row_splits, rows), tf.int32)
        return Tokens(*map(decoded.with_values, (ids, places, places + 1)))

    def decode(self, token_ids, kept):
        characters = tf.where(kept, tf.gather(tf.constant(self._characters), token_ids), "")
        return tf.strings.reduce_join(characters, axis=-1)


_PAIR = 2**21  # more than any code point: a pair of them as one number


def _changes(code_points, rows):
    """(N,) where NFC would change texts: what is written otherwise, or not in order, or composes.

    A mark stands in order behind those of no higher class, and composes with the last character of
    class 0 unless one of its own class stands between them.

    Reference: https://www.unicode.org/reports/tr15/ (section 1.3)
    """
    singles, pairs, classes = _tables()
    own = classes(code_points)
    begins_text = rows != shifted(rows, -1, -1)
    before = tf.where(begins_text, 0, shifted(own, -1, 0))
    disordered = (own > 0) & (before > own)
    stands_alone = (own == 0) | begins_text
    starter = tf.cumsum(tf.cast(stands_alone, tf.int32), exclusive=True) - 1  # of those before
    starter = tf.gather(tf.boolean_mask(code_points, stands_alone), tf.maximum(starter, 0))
    pair = tf.cast(starter, tf.int64) * _PAIR + tf.cast(code_points, tf.int64)
    composes = find(pairs, pair)[0] & ~begins_text & ((before == 0) | (before < own))
    return find(singles, code_points)[0] | disordered | composes


@functools.cache
def _tables():
    """What NFC changes alone, and what pairs, both ascending; a `CodePointTable` of classes."""
    singles, pairs, seconds, starters = [], set(), set(), []
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
            pairs.add((composed, last))
            seconds.add(last)
        if not 0xAC00 <= code_point < 0xD7A4:  # no mark gets into a syllable of Hangul
            starters.append(character)
    for starter in starters:  # a mark may take the place of one that is composed already
        for second in seconds:
            if unicodedata.normalize("NFC", starter + second) != starter + second:
                pairs.add((starter, second))
    classes = np.zeros(CODE_POINTS, int)
    for code_point in range(sys.maxunicode + 1):
        classes[code_point] = unicodedata.combining(chr(code_point))
    pairs = sorted(ord(first) * _PAIR + ord(second) for first, second in pairs)
    return singles, pairs, CodePointTable(classes)
