"""Two-stream self-attention: what a position holds, and what may predict it."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.attention.multi_head import Heads
from seqkeras.masks import causal_mask, combine_masks, distances_between
from seqkeras.shapes import require_sequence


@keras.saving.register_keras_serializable("seqkeras")
class TwoStreamAttention(Heads):
    """Multi-head self-attention of two streams, both of which attend to the first one.

        content stream: h'(t) = attention(h(t), h(s), h(s)), s = t or earlier than t in the order
        query stream:   g'(t) = attention(g(t), h(s), h(s)), s earlier than t in the order

    h(t) knows which token stands at t; g(t) knows where t is and not what stands there, so that
    g'(t) can predict it. attention is that of `MultiHeadAttention`; both streams have the same
    weights; `get_weights` gives arrays of its shapes in its order.

    `extend` and `causal` go from left to right, where the query stream is a position ahead of the
    content stream: what h(t) may attend to is what predicts position t + 1.

    Notation: t and s are positions, the paper's z_t; one is earlier than another if it comes before
    it in the order z.

    Args:
        num_heads, head_dim, output_dim, use_bias, dropout, causal, seed, output_stddev,
            relative_clip: see `MultiHeadAttention`.

    Call arguments:
        streams: (B, 2 T, D), h(1..T) and then g(1..T).
        attention_mask: (B or 1, 2 T, T) booleans, the positions of h that each of them may attend
            to, True = may attend; None for all. It is `permutation_mask` of either stream, one
            below the other.
        causal: the t-th of each stream attends to h(1..t) alone; None for the layer's.
        distance_bias: a built `DistanceBias`, whose numbers are added to the scores, or None; the
            t-th of the query stream stands at t + 1, as it does for relative_clip.

    Returns:
        (B, 2 T, D), h' and then g'; where nothing may be attended to, the output's bias.

    Raises:
        ValueError: if num_heads, head_dim, output_dim or relative_clip is not a positive integer,
            or the streams are not of rank 3.

    Reference: Yang et al. 2019, section 2.3 (XLNet), https://arxiv.org/abs/1906.08237

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import TwoStreamAttention, permutation_mask
        >>> order = np.array([2, 0, 1])
        >>> masks = [permutation_mask(order, stream) for stream in ("content", "query")]
        >>> layer, streams = TwoStreamAttention(num_heads=2, head_dim=4), np.ones((1, 2 * 3, 8))
        >>> tuple(layer(streams, attention_mask=ops.concatenate(masks, axis=1)).shape)
        (1, 6, 8)
    """

    def build(self, streams_shape):
        require_sequence(self, streams=streams_shape)
        self._add_projections(*[streams_shape[-1]] * 3)

    def call(self, streams, attention_mask=None, training=False, causal=None, distance_bias=None):
        key, value = self._prepare_content(streams)
        length = ops.shape(key)[2]
        mask = self._mask(length, attention_mask, causal)
        distances = distances_between(length)
        distances = ops.concatenate([distances, distances + 1], axis=1)
        contexts = self._attend(
            self._queries(streams), key, value, mask, False, training, distance_bias, distances
        )
        return self._project_output(self._merge(contexts))

    def extend(self, streams, cache, positions, prefix_lengths=None, distance_bias=None):
        """Attend from T further tokens, (B, 2 T, D), to their content and the earlier one; see
        `Heads.extend`."""
        further = self._prepare_content(streams)
        queries, length = self._queries(streams), ops.shape(further[0])[2]
        tables = self._tables(distance_bias)
        contexts, *extended = composites.cached_attention(
            queries[:, :, :length], *further, *cache, positions, prefix_lengths, *tables
        )
        tables = [None if table is None else _from_one_ahead(table) for table in tables]
        ahead, *_ = composites.cached_attention(
            queries[:, :, length:], *further, *cache, positions, prefix_lengths, *tables
        )
        contexts = ops.concatenate([contexts, ahead], axis=2)
        return self._project_output(self._merge(contexts)), extended

    def attention_weights(self, streams, attention_mask=None, causal=None, distance_bias=None):
        """Return (B, N, T, T) weights of the query stream, which predicts, as a plot shows them."""
        key, _ = self._prepare_content(streams)
        length = ops.shape(key)[2]
        mask = self._mask(length, attention_mask, causal)
        mask = None if mask is None else mask[:, :, length:]
        queries, distances = self._queries(streams)[:, :, length:], distances_between(length) + 1
        return self._weigh(queries, key, mask, False, distance_bias, distances)

    def _queries(self, streams):
        """Return (B, N, 2 T, H)."""
        return self._split(self._project(streams, self.query_kernel, self.query_bias))

    def _prepare_content(self, streams):
        """Return keys and values of the content stream, (B, N, T, H) each."""
        content = streams[:, : ops.shape(streams)[1] // 2]
        return self.prepare(content, content)

    def _mask(self, length, attention_mask, causal):
        """Return (B or 1, 1, 2 T, T) mask, or None."""
        before = None
        if self.causal if causal is None else causal:
            before = ops.concatenate([causal_mask(length)] * 2, axis=1)
        mask = combine_masks(before, attention_mask)
        return None if mask is None else mask[:, None]


def _from_one_ahead(table):
    """Return a table (2M + 1, ·) by the distance from the position before: its row of s - t is the
    one of s - (t + 1), if s is not after t."""
    return ops.concatenate([table[:1], table[:-1]], axis=0)
