"""How a SentencePiece model normalizes: the rules of its precompiled map, and spaces.

Reference: https://github.com/google/sentencepiece (src/normalizer.cc); Kanou and Yata's trie,
https://github.com/s-yata/darts-clone
"""

import functools

import numpy as np
import tensorflow as tf

from export.text_graphs.characters import every, shifted
from export.text_graphs.lookup import Trie

SPACE, BAR = ord(" "), 0x2581  # a space, and what a model writes for it
NOWHERE = 2**30  # a place behind all texts
LABEL = 1 << 31 | 0xFF


def rules_of(charsmap):
    """What a model writes for what: string -> string.

    Args:
        charsmap: bytes, the normalizer's precompiled map.
    """
    if not charsmap:
        return {}
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", size // 4, offset=4).astype("int64")
    written = charsmap[4 + size :]
    rules, keys, nodes = {}, [b""], np.array([_offset(units[0])])
    labels = np.arange(1, 256)
    while len(nodes):
        children = nodes[:, None] ^ labels  # (N, 255)
        inside = children < len(units)
        found = inside & ((units[np.where(inside, children, 0)] & LABEL) == labels)
        parents, places = np.nonzero(found)
        keys = [keys[parent] + bytes([place + 1]) for parent, place in zip(parents, places)]
        unit = units[children[parents, places]]
        nodes = children[parents, places] ^ _offset(unit)
        for key, node, leaf in zip(keys, nodes, unit >> 8 & 1):
            if leaf:
                begin = int(units[node] & 0x7FFFFFFF)
                rules[key.decode()] = written[begin : written.index(b"\0", begin)].decode()
    return rules


def _offset(unit):
    return (unit >> 10) << ((unit & 1 << 9) >> 6)


@functools.lru_cache(maxsize=2)
def _tables(charsmap):
    """The `Trie` of what is written otherwise, and as what, code points each."""
    rules = rules_of(charsmap)
    trie = Trie({(0, *map(ord, key)): place for place, key in enumerate(rules)})
    return trie, [[ord(each) for each in value] for value in rules.values()] or [[]]


class Normalizer:
    """Code points of texts to those of the model, and where each comes from.

    Args:
        spec: the model's `NormalizerSpec`.

    Raises:
        ValueError: if the model does not write a bar for a space.
    """

    def __init__(self, spec):
        if not spec.escape_whitespaces:
            raise ValueError("text graph: a SentencePiece model must write ▁ for a space.")
        self.spec = spec
        self._trie, written = _tables(spec.precompiled_charsmap)
        self._longest = self._trie.longest
        self._counts = np.array([len(each) for each in written], "int32")
        self._begins = np.cumsum([0, *self._counts[:-1]]).astype("int32")
        self._written = np.array([0, *(each for value in written for each in value)], "int32")

    def __call__(self, source):
        """`Characters` to code points, of each row and beginning, and (B,) where the rows end."""
        code_points, index = source.code_points, tf.range(tf.size(source.code_points))
        state, rule = tf.zeros_like(index), tf.fill([tf.size(index)], -1)
        lengths = tf.ones_like(index)
        trie = self._trie.held()
        for step in range(self._longest):
            same = source.rows == shifted(source.rows, step, -1) if step else index >= 0
            following = shifted(code_points, step, 0) if step else code_points
            state = tf.where(same, trie.step(state, following), -1)
            found = trie.value(state)
            rule = tf.where(found >= 0, found, rule)
            lengths = tf.where(found >= 0, step + 1, lengths)
        taken = self._taken(lengths)
        code_points, rows, starts, ends, rule = (
            tf.boolean_mask(each, taken)
            for each in (
                code_points,
                source.rows,
                source.starts,
                tf.gather(source.ends, tf.minimum(index + lengths, tf.size(index)) - 1),
                rule,
            )
        )
        counts = tf.where(rule >= 0, tf.gather(self._counts, tf.maximum(rule, 0)), 1)
        owner, copy = every(counts)
        own = tf.gather(rule, owner)
        place = tf.gather(self._begins, tf.maximum(own, 0)) + copy
        became = tf.where(
            own >= 0,
            tf.gather(self._written, tf.where(own >= 0, 1 + place, 0)),
            tf.gather(code_points, owner),
        )
        stops = tf.math.unsorted_segment_max(ends, rows, source.batch_size)
        single = tf.math.unsorted_segment_sum(became, owner, tf.size(rows)) == SPACE
        skipped = single & (counts == 1) & self.spec.remove_extra_whitespaces
        first = tf.where(skipped, NOWHERE, starts)
        begins = tf.math.unsorted_segment_min(first, rows, source.batch_size)
        rows, starts = tf.gather(rows, owner), tf.gather(starts, owner)
        return self._spaced(became, rows, starts, begins, stops)

    def _taken(self, lengths):
        """Which characters begin a rule or stand for themselves: none that another rule took."""

        def covered(taken):
            found = tf.zeros_like(taken)
            for by in range(1, self._longest):
                found |= shifted(taken & (lengths > by), -by, False)
            return found

        def unsettled(taken, again):
            return tf.reduce_any(taken != again)

        def settle(taken, again):
            return again, ~covered(again)

        everything = tf.ones_like(lengths, tf.bool)
        _, taken = tf.while_loop(unsettled, settle, (everything, ~covered(everything)))
        return taken

    def _spaced(self, code_points, rows, starts, begins, stops):
        """Spaces beside spaces left out, and one set before each text, where it begins."""
        batch_size = tf.size(stops)
        if self.spec.remove_extra_whitespaces:
            space = code_points == SPACE
            first = rows != shifted(rows, -1, -1)
            kept = ~(space & (first | shifted(space, -1, False)))
            code_points, rows, starts = (
                tf.boolean_mask(each, kept) for each in (code_points, rows, starts)
            )
            index = tf.range(tf.size(rows))
            blank = (code_points == SPACE) | (code_points == BAR)
            last = tf.math.unsorted_segment_max(tf.where(blank, -1, index), rows, batch_size)
            inside = index <= tf.gather(last, rows)
            cut = tf.math.unsorted_segment_min(tf.where(inside, NOWHERE, starts), rows, batch_size)
            stops = tf.minimum(stops, cut)
            code_points, rows, starts = (
                tf.boolean_mask(each, inside) for each in (code_points, rows, starts)
            )
        code_points = tf.where(code_points == SPACE, BAR, code_points)
        if self.spec.add_dummy_prefix:
            size = tf.cast(batch_size, tf.int64)
            ragged = tf.RaggedTensor.from_value_rowids(code_points, rows, size)
            some = begins < NOWHERE
            if self.spec.remove_extra_whitespaces:
                some = ragged.row_lengths() > 0

            def behind(prefix, values):
                prefix = tf.boolean_mask(prefix, some)
                prefix = tf.RaggedTensor.from_row_lengths(prefix, tf.cast(some, tf.int64))
                return tf.concat([prefix, ragged.with_values(values)], axis=1)

            starts = behind(begins, starts).values
            ragged = behind(tf.fill([batch_size], BAR), code_points)
            code_points, rows = ragged.values, ragged.value_rowids()
        return code_points, rows, starts, stops
