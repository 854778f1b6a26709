"""Transformer encoder: blocks of self-attention and feed-forward."""

import keras
from keras import ops

from seqkeras.transformer.block import Block
from seqkeras.transformer.stack import BlockStack


@keras.saving.register_keras_serializable("seqkeras")
class EncoderBlock(Block):
    """One block of an encoder.

        post-norm (the paper's):
        a = norm(x + dropout(attention(x, x, x)))
        y = norm(a + dropout(feed_forward(a)))

        pre-norm: x + dropout(sublayer(norm(x))) instead of each norm(x + dropout(sublayer(x)))

    Args:
        hidden_dim: D, the paper's d_model.
        num_heads: N, which divides D.
        feed_forward_dim: F.
        activation: "relu", "gelu", "gelu_tanh" or "silu".
        pre_norm: normalise what enters a sublayer, not the sum after it.
        dropout: dropout rate of what each sublayer gives.
        attention_dropout: dropout rate of the attention weights.
        activation_dropout: dropout rate of what the activation gives.
        epsilon: epsilon of layer normalisation.
        residual_stddev: standard deviation of the normal numbers that the last kernel of each
            sublayer starts as; None for Glorot's uniform ones.
        attention_window: r: self-attention sees no further than so many positions, by
            `RestrictedSelfAttention`; None for all.
        relative_clip: K: self-attention has vectors of the distances up to K, see
            `MultiHeadAttention`; None for none.
        norm: "layer", or "rms", which neither centres nor adds (Zhang and Sennrich 2019).
        use_bias: whether linear maps add a bias; T5's do not.
        gated: whether the feed-forward layer has a gate.
        head_dim: H; None for D / N.
        causal: whether self-attention sees no later position; with `attention_window` the block can
            stream (`seqkeras.streams`).

    Call arguments:
        sequence: (B, T, D). What padding holds changes nothing elsewhere, but a NaN there would
            reach the gradients of the weights.
        attention_mask: (B or 1, T or 1, T) booleans, True = may attend, or None. A padding mask
            (B, T) enters as `mask[:, None]`.
        distance_bias: a built `DistanceBias`, whose numbers are added to the scores, or None.

    A mask that Keras carries along, as after `Embedding(mask_zero=True)`, is padding too, and is
    passed on.

    Returns:
        (B, T, D); numbers without a meaning at padded positions.

    Raises:
        ValueError: if num_heads does not divide hidden_dim, the activation is unknown, or the
            sequence has another width.

    Reference: Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762; pre-norm: Xiong
    et al. 2020, figure 1, https://arxiv.org/abs/2002.04745

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import padding_mask
        >>> from seqkeras.transformer import EncoderBlock
        >>> block = EncoderBlock(hidden_dim=8, num_heads=2, feed_forward_dim=16)
        >>> mask = padding_mask(np.array([5, 3]), 5)[:, None]  # no query attends to padding
        >>> tuple(block(np.ones((2, 5, 8)), attention_mask=mask).shape)
        (2, 5, 8)
    """

    def __init__(self, *sizes, causal: bool = False, **options):
        self.causal = causal
        super().__init__(*sizes, **options)
        self.options["causal"] = causal

    def build(self, sequence_shape):
        self._require_width(sequence_shape)
        self._build_shared(sequence_shape)

    def call(self, sequence, attention_mask=None, training=False, distance_bias=None):
        x = self._attend_to_itself(sequence, attention_mask, training, distance_bias=distance_bias)
        return self._feed(x, training)


@keras.saving.register_keras_serializable("seqkeras")
class Encoder(BlockStack):
    """Encoder blocks on top of each other; pre-norm blocks end with one more normalisation.

        x_l = block_l(x_{l-1})        y = x_L, or norm(x_L)

        Encoder(EncoderBlock(512, 8, 2048, dropout=0.1), 6)

    Args:
        block: an `EncoderBlock`, the first one; the others are made from its config.
        num_layers: L.
        distance_bias: a `DistanceBias` that all blocks share, as in T5, or None.

    Call arguments:
        sequence: (B, T, D).
        attention_mask: (B or 1, T or 1, T) booleans, True = may attend, or None.

    A mask that Keras carries along, as after `Embedding(mask_zero=True)`, is padding too, and is
    passed on.

    Returns:
        (B, T, D).

    Raises:
        ValueError: if num_layers is not positive, or block is no `EncoderBlock`.

    Reference: Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762

    Example:
        >>> import numpy as np
        >>> from seqkeras.transformer import Encoder, EncoderBlock
        >>> encoder = Encoder(EncoderBlock(8, 2, 16, pre_norm=True), num_layers=2)
        >>> x = np.ones((2, 5, 8))
        >>> tuple(encoder(x).shape)
        (2, 5, 8)
        >>> tuple(encoder.attention_weights(x).shape)  # of each head of each block
        (2, 2, 2, 5, 5)
    """

    block_class = EncoderBlock

    def build(self, sequence_shape):
        self._build_blocks(sequence_shape)

    def call(self, sequence, attention_mask=None, training=False):
        return self.hidden_states(sequence, attention_mask, training)[-1]

    def attention_weights(self, sequence, attention_mask=None):
        """Return (B, L, N, T, T): how much each head of each block attends; the arguments are the
        call's."""
        states = self.hidden_states(sequence, attention_mask)
        return ops.stack(self.attention_of(states, attention_mask), axis=1)

    def attention_of(self, hidden_states, attention_mask=None):
        """Return a list of L tensors (B, N, T, T): the weights of what `hidden_states` returned."""
        return [
            block.self_attention_weights(state, attention_mask, distance_bias=self.distance_bias)
            for block, state in zip(self.blocks, hidden_states)  # the last state enters none
        ]

    def hidden_states(self, sequence, attention_mask=None, training=False):
        """Return what enters the first block and what each block gives, the last one as `call`
        returns it: a list of L + 1 tensors (B, T, D)."""
        states = [sequence]
        options = {"attention_mask": attention_mask, "training": training}
        for block in self.blocks:
            states.append(block(states[-1], **options, distance_bias=self.distance_bias))
        return [*states[:-1], self._normalise(states[-1])]
