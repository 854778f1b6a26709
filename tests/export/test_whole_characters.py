import numpy as np
import tensorflow as tf

from seqkeras.export.text_graphs.whole_characters import whole_characters
from seqkeras.serving.text import whole_characters as in_python

CHARACTERS = [
    *"ab. \n\u00a0\u2028\x1c\u0301\u0308\u200d\ufe0f\u064e",
    "न",
    "म",
    "\u094d",
    *"🚀👩🏽❤",
]
CHARACTERS += [*"+\u200c", "ｶ", "\uff9e", *"🇨🇭🇩🏴", "\U000e0067", "\U000e007f", "น", "\u0e33"]
CHARACTERS += ["\u1112", "\u1161", "\u11ab", "\uac00", "\uac01"]


def test_places_are_widened_as_in_python():
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(CHARACTERS, random.integers(1, 9))) for _ in range(3000)]
    starts = np.array([random.integers(len(text)) for text in texts], "int32")
    ends = np.array([random.integers(s, len(t)) + 1 for t, s in zip(texts, starts)], "int32")
    found = tf.function(whole_characters)(tf.constant(texts), starts, ends)
    expected = [in_python(*each) for each in zip(texts, starts.tolist(), ends.tolist())]
    assert list(zip(*(each.numpy().tolist() for each in found))) == expected
    assert sum(each != (s, e) for each, s, e in zip(expected, starts, ends)) > 500


def test_flags_are_paired_from_the_first_of_a_run():
    texts = tf.constant(["🇨🇭🇩🇪", "🇨a🇨🇭🇩", "🇩\uac00\u11ab"])
    start, end = whole_characters(texts, tf.constant([1, 3, 1]), tf.constant([3, 4, 2]))
    assert (start.numpy().tolist(), end.numpy().tolist()) == ([0, 2, 1], [4, 4, 3])


def test_a_part_that_there_is_none_of_is_no_error():
    none = tf.constant([-1, -1])
    whole_characters(tf.constant(["a\u0301", ""]), none, none)
