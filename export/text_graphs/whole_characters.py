"""Places in a text widened to whole characters, in core operators of TensorFlow.

What `serving.text.whole_characters` does in Python.
"""

import tensorflow as tf

GOES_ON = r"(?:[\p{M}\x{1F3FB}-\x{1F3FF}]|\x{200D}\p{S}?)*"
CHARACTER = rf"(?:\x{{200D}}\p{{S}}|[^\s\p{{Z}}]){GOES_ON}"
FIRST, LAST = rf"(?s)^({CHARACTER}|.).*$", rf"(?s)^.*?({CHARACTER}|.)$"


def whole_characters(text, start, end):
    """Return (start, end) of parts of texts, so that no character that a reader sees is cut.

    Args:
        text: (B,) strings.
        start, end: (B,) int32, places of code points, start < end; what is given for a part that
            there is none of says nothing.
    """
    head = tf.strings.substr(text, tf.zeros_like(start), start + 1, unit="UTF8_CHAR")
    tail = tf.strings.substr(text, tf.maximum(end - 1, 0), _length(text), unit="UTF8_CHAR")
    character_at_start = tf.strings.regex_replace(head, LAST, r"\1")
    character_at_end = tf.strings.regex_replace(tail, FIRST, r"\1")
    return start + 1 - _length(character_at_start), end - 1 + _length(character_at_end)


def _length(text):
    return tf.strings.length(text, unit="UTF8_CHAR")
