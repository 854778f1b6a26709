"""PermutedGPT: a GPT that predicts its tokens in any order, by two streams.

Left out of XLNet: its form of relative positions, relative segments, the memory of the text before,
and partial prediction, which is a matter of the targets.
"""

from typing import ClassVar

import keras
import numpy as np
from keras import ops

from seqkeras.masks import padding_mask, permutation_mask, with_padding
from seqkeras.models.gpt import GPT, STDDEV
from seqkeras.models.positions import add_positions
from seqkeras.transformer.two_stream import TwoStreamBlock, TwoStreamDecoder
from seqkeras.values import known_numbers


@keras.saving.register_keras_serializable("seqkeras")
class PermutedGPT(GPT):
    """Language model of two-stream self-attention, in any order of factorisation.

        p(y) = product over i of p(y(z(i)) | y(z(1)) ... y(z(i-1)))

        content stream: h_0(t) = E y(t) + P(t)
        query stream:   g_0(t) = w + P(t)
        [h_l; g_l] = block_l([h_{l-1}; g_{l-1}])          (`TwoStreamBlock`)
        logits(t) = E g_L(t + 1), for y(t + 1)

    z is the order, a permutation of the positions. g(t) sees the tokens that stand earlier in it
    than position t, and not the one at t. Without an order the model reads from left to right, as
    every `GPT`: so do `read` and `step`, whose cache holds the content stream. As there, the logits
    at a token are for the next one: those at the last token are for position T, which is the last
    of every order, and none are for position 0.

    Notation: w, h, g and z are the paper's.

    Args:
        vocab_size, hidden_dim, num_layers, num_heads, feed_forward_dim, max_length: see `GPT`; w
            is one more weight, and there is a position more.
        activation, pre_norm, dropout, attention_dropout, epsilon, positions: see `GPT`;
            attention_window and mask keep their defaults.

    Call arguments (one dictionary):
        token_ids: (B, T) integers, padded on the right, if at all.
        lengths: (B,) integers, the real tokens of each row, which may be left out.
        order: (B, T) integers, the positions of the tokens in the order z; left out, from left to
            right.

    Returns:
        logits: (B, T, V), in float32 at least.

    Raises:
        ValueError: what a `GPT` raises, or if the order is no permutation of 0, 1, ... T - 1.

    `fill` predicts one token from the tokens on both sides.

    Reference: Yang et al. 2019, sections 2.2 and 2.3 (XLNet), https://arxiv.org/abs/1906.08237

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import PermutedGPT
        >>> model = PermutedGPT(17, 8, 1, num_heads=2, feed_forward_dim=16, max_length=32)
        >>> token_ids = np.array([[3, 1, 4, 2]])
        >>> tuple(model({"token_ids": token_ids, "order": np.array([[2, 0, 3, 1]])}).shape)
        (1, 4, 17)
        >>> tuple(model.fill(token_ids, positions=np.array([2])).shape)  # from both sides
        (1, 17)
    """

    block_class, decoder_class = TwoStreamBlock, TwoStreamDecoder
    masks: ClassVar = {"causal": []}
    ahead = 1

    @property
    def input_names(self):
        return ["token_ids"], ["lengths", "order"]

    def build(self, inputs_shape=None):
        super().build(inputs_shape)
        self.query = self.add_weight(
            name="query",
            shape=(self.config["hidden_dim"],),
            initializer=keras.initializers.RandomNormal(stddev=STDDEV),
        )

    def fill(self, token_ids, positions, lengths=None):
        """Return (B, V) logits of the token at one position of each row, from all other tokens.

        Args:
            token_ids: (B, T) integers; any token may stand at the position.
            positions: (B,) integers, from 1.
            lengths: (B,) integers, the real tokens of each row; None for T.

        Raises:
            ValueError: if a position known already is not from 1 to T - 1.
        """
        known, length = known_numbers(positions), token_ids.shape[1] or np.inf  # if it is open
        if known is not None and np.any((known < 1) | (known >= length)):
            raise ValueError(
                f"PermutedGPT: positions must be from 1 to {length - 1}, as no logits are for the "
                f"first token; received {known.tolist()}."
            )
        last = ops.cast(positions, "int32")[:, None]
        others = ops.arange(ops.shape(token_ids)[1] - 1, dtype="int32")
        others = others + ops.cast(others >= last, "int32")  # (B, T - 1)
        order = ops.concatenate([others, last], axis=1)
        logits = self({"token_ids": token_ids, "lengths": lengths, "order": order})
        return ops.take_along_axis(logits, last[..., None] - 1, axis=1)[:, 0]

    def _embed(self, token_ids, positions):
        """Return both streams, (..., 2 T, D)."""
        content = super()._embed(token_ids, positions)
        query = ops.cast(self.query, content.dtype)
        query = add_positions(self.positions, query, positions + 1)
        return ops.concatenate([content, ops.broadcast_to(query, ops.shape(content))], axis=-2)

    def _mask(self, inputs):
        order, lengths = inputs.get("order"), inputs.get("lengths")
        if order is None:
            return super()._mask(inputs)
        order = ops.convert_to_tensor(order)
        length, content = ops.shape(order)[1], permutation_mask(order)
        last = ops.zeros_like(order[:, :1]) + ops.cast(length, order.dtype)  # position T
        query = permutation_mask(ops.concatenate([order, last], axis=1), "query")
        mask = ops.concatenate([content, query[:, 1:, :-1]], axis=1)
        real = None if lengths is None else padding_mask(lengths, length)
        return {"attention_mask": with_padding(mask, real), "causal": False}
