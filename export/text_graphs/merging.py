"""Byte-pair merges in a graph, in the order of their ranks."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import tensorflow as tf

from seqkeras.export.text_graphs.characters import shifted

if TYPE_CHECKING:
    from seqkeras.export.text_graphs.lookup import PairTable
    from seqkeras.tensors import Tensor

UNRANKED = 2**30  # greater than all ranks
MOST_STEPS = 1000  # a word of random letters takes a merge for every two or three letters


@dataclasses.dataclass(frozen=True)
class Parts:
    """The symbols of all words, in order."""

    ids: tf.Tensor  # (N,) int32, or -1 for a symbol that is never merged
    words: tf.Tensor  # (N,) int32, the index of each one's word; from 0, ascending
    starts: tf.Tensor  # (N,) int32, the first original symbol of each
    ends: tf.Tensor  # (N,) int32, the last one


def merged(parts: Parts, ranks: PairTable, results: Tensor) -> tuple[Parts, Tensor]:
    """Repeat in each word: merge the pair of neighbours with the lowest rank, from the left.

    All pairs of one rank are merged at once. The result is the same as one by one if no merge uses
    the result of a later merge, which holds for all merges learned from a text.

    Args:
        ranks: `PairTable`, two ids -> their rank.
        results: (R,) the id that the pair of each rank becomes.

    Returns:
        `Parts`, and (N,) booleans: which could be merged further, as a word takes more than
        `MOST_STEPS` ranks.

    Reference: Sennrich et al. 2016, section 3.2, https://arxiv.org/abs/1508.07909
    """
    results, ranks = tf.constant(results, tf.int32), ranks.as_constants()
    num_words = tf.reduce_max(tf.concat([[-1], parts.words], axis=0)) + 1

    def ranks_of(left, right, are_neighbours):
        rank = ranks(left, right)
        return tf.where(are_neighbours & (rank >= 0), rank, UNRANKED)

    def is_going(step, ids, words, starts, ends, rank):
        return tf.reduce_any(rank < UNRANKED) & (step < MOST_STEPS)

    def advance(step, ids, words, starts, ends, rank):
        index = tf.range(tf.size(ids))
        best = tf.math.unsorted_segment_min(rank, words, num_words)  # (W,)
        is_best = (rank < UNRANKED) & (rank == tf.gather(best, words))
        # A run of equal pairs, as in "aaaa", merges every second pair: the others overlap with it.
        begins = is_best & ~shifted(is_best, -1, False)
        run = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        begin = tf.gather(tf.boolean_mask(index, begins), tf.maximum(run, 0))
        left = is_best & ((index - begin) % 2 == 0)
        ids = tf.where(left, tf.gather(results, tf.where(left, rank, 0)), ids)
        ends = tf.where(left, shifted(ends, 1, 0), ends)
        indices = tf.reshape(tf.where(~shifted(left, -1, False)), [-1])
        ids, words, starts, ends, rank, made = (
            tf.gather(values, indices) for values in (ids, words, starts, ends, rank, left)
        )
        # Only merged symbols, and the symbols before them, have new neighbours.
        changed = tf.reshape(tf.where(made | shifted(made, 1, False)), [-1])
        right = tf.minimum(changed + 1, tf.size(ids, tf.int64) - 1)
        left_id, right_id = tf.gather(ids, changed), tf.gather(ids, right)
        same = (right > changed) & (tf.gather(words, changed) == tf.gather(words, right))
        rank = tf.tensor_scatter_nd_update(
            rank, changed[:, None], ranks_of(left_id, right_id, same)
        )
        return step + 1, ids, words, starts, ends, rank

    same = parts.words == shifted(parts.words, 1, -1)
    rank = ranks_of(parts.ids, shifted(parts.ids, 1, -1), same)
    state = (0, parts.ids, parts.words, parts.starts, parts.ends, rank)
    invariants = (tf.TensorShape([]), *(tf.TensorShape([None]),) * 5)
    _, ids, words, starts, ends, rank = tf.while_loop(
        is_going, advance, state, shape_invariants=invariants
    )
    return Parts(ids, words, starts, ends), rank < UNRANKED
