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

    Args: those of `DecoderBlock`, without attention_window.

    Call arguments:
        sequence: (B, 2 T, D), h(1..T) and then g(1..T).
        attention_mask, causal: see `TwoStreamAttention`.

    Returns:
        (B, 2 T, D).

    Raises:
        ValueError: if there is an attention_window, which sees what is near in the text and not in
            the order, or what a `DecoderBlock` raises.

    Reference: Yang et al. 2019, section 2.3 and appendix A.2 (XLNet),
    https://arxiv.org/abs/1906.08237
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

    Call arguments: see `TwoStreamBlock`.

    Returns:
        (B, T, D), g(1..T).

    Reference: Yang et al. 2019, section 2.3 (XLNet), https://arxiv.org/abs/1906.08237
    """

    block_class = TwoStreamBlock

    def _normalise(self, sequence):
        """Return the query stream of (..., 2 T, D), as it leaves the last block."""
        return super()._normalise(sequence[..., ops.shape(sequence)[-2] // 2 :, :])

    def _require_room(self, positions, length, cache_length):
        super()._require_room(positions, None if length is None else length // 2, cache_length)
