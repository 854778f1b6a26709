"""Tables in a graph, of core operators: no `tf.lookup`, whose tables are to be initialised."""

import copy

import numpy as np
import tensorflow as tf

CODE_POINTS = 0x110000
PAGE = 256


def find(ordered, values):
    """Whether each value is in an ascending list, and where."""
    ordered = tf.convert_to_tensor(ordered, values.dtype)
    place = tf.searchsorted(ordered, tf.reshape(values, [-1]))
    place = tf.reshape(tf.minimum(place, tf.size(ordered) - 1), tf.shape(values))
    return tf.gather(ordered, place) == values, place


class PairTable:
    """(a, b) -> a number, for pairs of numbers under 2^31; what is not there is -1.

    Args:
        pairs: (a, b) -> number, one at least.
    """

    def __init__(self, pairs):
        keys = np.array([(a << 31) + b for a, b in pairs], "int64")
        order = np.argsort(keys)
        self.keys = keys[order]
        self.values = np.fromiter(pairs.values(), "int32", len(pairs))[order]

    def held(self):
        """The table as constants of this graph, which holds them once for several calls."""
        table = copy.copy(self)
        table.keys, table.values = tf.constant(self.keys), tf.constant(self.values)
        return table

    def __call__(self, a, b):
        key = tf.bitwise.left_shift(tf.cast(a, tf.int64), tf.constant(31, tf.int64))
        known, place = find(self.keys, key + tf.cast(b, tf.int64))
        return tf.where(known & (a >= 0), tf.gather(self.values, place), -1)


class CodePointTable:
    """Code point -> a number, in pages of which equal ones lie once.

    Args:
        numbers: (1114112,) integers.
    """

    def __init__(self, numbers):
        pages = np.asarray(numbers, "int32").reshape(-1, PAGE)
        pages, places = np.unique(pages, axis=0, return_inverse=True)
        self.pages, self.places = pages.reshape(-1), places.reshape(-1).astype("int32")

    def __call__(self, code_points):
        page = tf.gather(self.places, code_points // PAGE)
        return tf.gather(self.pages, page * PAGE + code_points % PAGE)


class Trie:
    """Sequences of numbers, walked along one by one; state 0 is the root, -1 is nowhere.

    Args:
        sequences: sequence -> its value, which is 0 at least.
        roots: how many roots there are; a sequence's first number says which it begins at, and is
            no step.
    """

    def __init__(self, sequences, roots=1):
        children, values = {}, [-1] * roots
        self.longest = 0
        for (state, *steps), value in sequences.items():
            self.longest = max(self.longest, len(steps))
            for step in steps:
                key = state, step
                if key not in children:
                    children[key] = len(values)
                    values.append(-1)
                state = children[key]
            values[state] = value
        self._children = PairTable(children or {(0, 0): -1})
        self.values = np.array(values, "int32")

    def held(self):
        """The tree as constants of this graph, which holds them once for several calls."""
        trie = copy.copy(self)
        trie._children, trie.values = self._children.held(), tf.constant(self.values)
        return trie

    def step(self, states, numbers):
        """The states behind a step."""
        return self._children(states, numbers)

    def value(self, states):
        """What ends at the states, or -1."""
        found = tf.gather(self.values, tf.maximum(states, 0))
        return tf.where(states >= 0, found, -1)
