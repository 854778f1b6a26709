"""Merging the neighbours that come first, until none are left: byte pairs, and sentence pieces."""

import dataclasses

import tensorflow as tf

from export.text_graphs.characters import shifted

NEVER = 2**30  # a rank after all ranks


@dataclasses.dataclass(frozen=True)
class Parts:
    """The parts of words, one after the other.

    Attributes:
        ids: (N,) int32, or -1 for what is never merged.
        words: (N,) int32, of which word each is; from 0, ascending.
        starts, ends: (N,) int32, where each lies: of a merged one, from the first to the last.
    """

    ids: tf.Tensor
    words: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


def merged(parts, ranks, results):
    """Merge in every word the neighbours of the lowest rank, from the left, as long as any are.

    All pairs of one rank are merged at once, which is the same as one by one wherever what a merge
    makes is never merged before that merge, as in all merges that were learned from a text.

    Args:
        parts: `Parts`.
        ranks: `PairTable`, two ids -> their rank.
        results: (R,) the id that the pair of each rank becomes.

    Reference: Sennrich et al. 2016, section 3.2, https://arxiv.org/abs/1508.07909
    """
    results = tf.constant(results, tf.int32)
    num_words = tf.reduce_max(tf.concat([[-1], parts.words], axis=0)) + 1

    def ranks_of(ids, words):
        rank = ranks(ids, shifted(ids, 1, -1))
        neighbours = words == shifted(words, 1, -1)
        return tf.where(neighbours & (rank >= 0), rank, NEVER)

    def goes_on(ids, words, starts, ends, rank):
        return tf.reduce_any(rank < NEVER)

    def advance(ids, words, starts, ends, rank):
        index = tf.range(tf.size(ids))
        best = tf.math.unsorted_segment_min(rank, words, num_words)  # (W,)
        is_best = (rank < NEVER) & (rank == tf.gather(best, words))
        # Of a run of equal pairs, as in "aaaa", every second one: the others share a part with it.
        begins = is_best & ~shifted(is_best, -1, False)
        run = tf.cumsum(tf.cast(begins, tf.int32)) - 1
        begin = tf.gather(tf.boolean_mask(index, begins), tf.maximum(run, 0))
        left = is_best & ((index - begin) % 2 == 0)
        ids = tf.where(left, tf.gather(results, tf.where(left, rank, 0)), ids)
        ends = tf.where(left, shifted(ends, 1, 0), ends)
        kept = ~shifted(left, -1, False)
        ids, words, starts, ends = (tf.boolean_mask(e, kept) for e in (ids, words, starts, ends))
        return ids, words, starts, ends, ranks_of(ids, words)

    state = (parts.ids, parts.words, parts.starts, parts.ends)
    invariants = (tf.TensorShape([None]),) * 5
    *state, _ = tf.while_loop(
        goes_on, advance, (*state, ranks_of(parts.ids, parts.words)), shape_invariants=invariants
    )
    return Parts(*state)
