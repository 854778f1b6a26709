"""Widen spans of texts to whole characters, in core operators of TensorFlow.

`seqkeras.serving.text.whole_characters` does the same in Python.
"""

import tensorflow as tf

from seqkeras.export.text_graphs.characters import BLANK
from seqkeras.serving.text.characters import (
    EXTENDERS,
    FLAG_LETTERS,
    JOINER,
    LEADING,
    OPEN_SYLLABLES,
    SYLLABLES,
    TRAILING,
    VOWELS,
)
from seqkeras.tensors import Tensor

JOINED_SIGN = rf"{JOINER}[^\P{{S}}{FLAG_LETTERS}\x00-\x7f]"
SYLLABLE = (
    f"[{LEADING}]*(?:[{VOWELS}{OPEN_SYLLABLES}][{VOWELS}]*|[{SYLLABLES}])[{TRAILING}]*"
    f"|[{LEADING}]+|[{TRAILING}]+"
)
CONTINUATION = rf"(?:{JOINED_SIGN}|[\p{{M}}{EXTENDERS}])*"
FLAG = f"[{FLAG_LETTERS}]{{1,2}}{CONTINUATION}"
CHARACTER = f"(?:{SYLLABLE}|{JOINED_SIGN}|[^{BLANK}]){CONTINUATION}"
PAIRS = f"(?:|.*?[^{FLAG_LETTERS}])(?:[{FLAG_LETTERS}]{{2}})*?"  # from a run's first letter
FIRST = rf"(?s)^({FLAG}|{CHARACTER}|.).*$"
LAST = rf"(?s)^(?:{PAIRS}({FLAG})|.*?({CHARACTER}|.))$"


def whole_characters(text: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """Return (start, end) of spans widened so that they do not cut a user-perceived character.

    Both are (B,) int32 in code points, start < end; the result for an empty span is undefined.
    """
    end = tf.maximum(end, 0)
    start, last = start + 1 - _last(text, start + 1), end - _last(text, end)
    tail = tf.strings.substr(text, last, _length(text), unit="UTF8_CHAR")
    return start, last + _length(tf.strings.regex_replace(tail, FIRST, r"\1"))


def _last(text, end):
    """Return (B,) lengths of the part before `end` of the character at that position."""
    head = tf.strings.substr(text, tf.zeros_like(end), end, unit="UTF8_CHAR")
    return _length(tf.strings.regex_replace(head, LAST, r"\1\2"))


def _length(text):
    return tf.strings.length(text, unit="UTF8_CHAR")
