"""Two-stream self-attention: what a position holds, and what may predict it."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.attention.multi_head import Heads
from seqkeras.masks import causal_mask, combine_masks
from seqkeras.shapes import require_sequence


@keras.saving.register_keras_serializable("seqkeras")
class TwoStreamAttention(Heads):
    """Multi-head self-attention of two streams, both of which attend to the first one.

        content stream: h'(t) = attention(h(t), h(s), h(s)), s = t or earlier than t in the order
        query stream:   g'(t) = attention(g(t), h(s), h(s)), s earlier than t in the order

    h(t) knows which token stands at t; g(t) knows where t is and not what stands there, so that
    g'(t) can predict it. attention is that of `MultiHeadAttention`; both streams have the same
    weights, which are laid out as there.

    `extend` and `causal` go from left to right, where the query stream is a position ahead of the
    content stream: what h(t) may attend to is what predicts position t + 1.

    Notation: t and s are positions, the paper's z_t; one is earlier than another if it comes before
    it in the order z.

    Args: see `Heads`.

    Call arguments:
        streams: (B, 2 T, D), h(1..T) and then g(1..T).
        attention_mask: (B or 1, 2 T, T) booleans, the positions of h that each of them may attend
            to, True = may attend; None for all. It is `permutation_mask` of either stream, one
            below the other.
        causal: the t-th of each stream attends to h(1..t) alone; None for the layer's.

    Returns:
        (B, 2 T, D), h' and then g'; where nothing may be attended to, the output's bias.

    Reference: Yang et al. 2019, section 2.3 (XLNet), https://arxiv.org/abs/1906.08237
    """

    def build(self, streams_shape):
        require_sequence(self, streams=streams_shape)
        self._add_projections(*[streams_shape[-1]] * 3)

    def call(self, streams, attention_mask=None, training=False, causal=None):
        key, value = self._prepare_content(streams)
        mask = self._mask(ops.shape(key)[2], attention_mask, causal)
        contexts = self._attend(self._queries(streams), key, value, mask, False, training)
        return self._project_output(self._merge(contexts))

    def extend(self, streams, cache, positions, prefix_lengths=None):
        """Attend from T further tokens, (B, 2 T, D), to their content and the earlier one; see
        `Heads.extend`."""
        further = self._prepare_content(streams)
        queries, length = self._queries(streams), ops.shape(further[0])[2]
        contexts, *extended = composites.cached_attention(
            queries[:, :, :length], *further, *cache, positions, prefix_lengths
        )
        ahead, *_ = composites.cached_attention(
            queries[:, :, length:], *further, *cache, positions, prefix_lengths
        )
        contexts = ops.concatenate([contexts, ahead], axis=2)
        return self._project_output(self._merge(contexts)), extended

    def attention_weights(self, streams, attention_mask=None, causal=None):
        """Return (B, N, T, T) weights of the query stream, which predicts, as a plot shows them."""
        key, _ = self._prepare_content(streams)
        length = ops.shape(key)[2]
        mask = self._mask(length, attention_mask, causal)
        mask = None if mask is None else mask[:, :, length:]
        return composites.attention_weights(self._queries(streams)[:, :, length:], key, mask)

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
