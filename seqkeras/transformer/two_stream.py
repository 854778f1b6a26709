"""Transformer decoder of two streams: what a position holds, and what may predict it."""

import keras
from keras import ops

from seqkeras.attention import TwoStreamAttention
from seqkeras.transformer.decoder import Decoder, DecoderBlock


@keras.saving.register_keras_serializable("seqkeras")
class TwoStreamBlock(DecoderBlock):
    """One block of a language model of two streams.

        [h_a; g_a] = norm([h; g] + dropout(two_stream_attention([h; g])))
        [h'; g'] = norm([h_a; g_a] + dropout(feed_forward([h_a; g_a])))

    or pre-norm, as a `DecoderBlock`, whose weights it has. Both streams share all of them.

    Args:
        hidden_dim, num_heads, feed_forward_dim, activation, pre_norm, cross_attention, options: see
            `DecoderBlock`, without attention_window.

    Call arguments:
        sequence: (B, 2 T, D), h(1..T) and then g(1..T).
        attention_mask, causal: see `TwoStreamAttention`.

    Returns:
        (B, 2 T, D).

    Raises:
        ValueError: if there is an attention_window, which sees what is near in the text and not in
            the order; see also `DecoderBlock`.

    Reference: Yang et al. 2019, section 2.3 and appendix A.2 (XLNet),
    https://arxiv.org/abs/1906.08237

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.transformer import TwoStreamBlock
        >>> block = TwoStreamBlock(8, 2, 16, cross_attention=False)
        >>> content, query = np.zeros((1, 3, 8)), np.ones((1, 3, 8))
        >>> tuple(block(ops.concatenate([content, query], axis=1)).shape)
        (1, 6, 8)
    """

    def _make_self_attention(self):
        if self.attention_window is not None:
            raise ValueError(
                "TwoStreamBlock: attention_window must be None, as every position of an order is "
                f"seen; received {self.attention_window}."
            )
        options = {"causal": self.causal, "relative_clip": self.relative_clip}
        return self._make_attention("attention", TwoStreamAttention, **options)


@keras.saving.register_keras_serializable("seqkeras")
class TwoStreamDecoder(Decoder):
    """A `Decoder` of `TwoStreamBlock`s, which returns the query stream of the last one.

    `read` takes T further tokens as (B, K, 2 T, D), and returns (B, K, T, D): their query stream is
    a position ahead.

    Args:
        block: a `TwoStreamBlock`, the first one; the others are made from its config.
        num_layers: L.
        distance_bias: a `DistanceBias` that all blocks share, or None.

    Call arguments:
        sequence: (B, 2 T, D), h(1..T) and then g(1..T).
        attention_mask, causal: see `TwoStreamAttention`.

    Returns:
        (B, T, D), g(1..T).

    Raises:
        ValueError: if num_layers is not positive, block is no `TwoStreamBlock`, or the sequence has
            another width.

    Reference: Yang et al. 2019, section 2.3 (XLNet), https://arxiv.org/abs/1906.08237

    Example:
        >>> import numpy as np
        >>> from seqkeras.transformer import TwoStreamBlock, TwoStreamDecoder
        >>> block = TwoStreamBlock(8, 2, 16, cross_attention=False)
        >>> decoder = TwoStreamDecoder(block, num_layers=2)
        >>> tuple(decoder(np.ones((1, 2 * 3, 8))).shape)  # g(1..3)
        (1, 3, 8)
    """

    block_class = TwoStreamBlock

    def _normalise(self, sequence):
        """Return the query stream of (..., 2 T, D), as it leaves the last block."""
        return super()._normalise(sequence[..., ops.shape(sequence)[-2] // 2 :, :])

    def _require_room(self, positions, length, cache_length):
        super()._require_room(positions, None if length is None else length // 2, cache_length)
