import numpy as np
import tensorflow as tf

from export.text_graphs.whole_characters import whole_characters
from serving.text import whole_characters as in_python

CHARACTERS = [*"ab. \n\u00a0\u0301\u0308\u200d\ufe0f\u064e", "न", "म", "\u094d", *"🚀👩🏽❤"]


def test_places_are_widened_as_in_python():
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(CHARACTERS, random.integers(1, 9))) for _ in range(3000)]
    starts = np.array([random.integers(len(text)) for text in texts], "int32")
    ends = np.array([random.integers(s, len(t)) + 1 for t, s in zip(texts, starts)], "int32")
    found = tf.function(whole_characters)(tf.constant(texts), starts, ends)
    expected = [in_python(*each) for each in zip(texts, starts.tolist(), ends.tolist())]
    assert list(zip(*(each.numpy().tolist() for each in found))) == expected
    assert sum(each != (s, e) for each, s, e in zip(expected, starts, ends)) > 500
