"""The base class of encoder and decoder blocks: sublayers with residual connections."""

import keras

from seqkeras.attention import MultiHeadAttention, RestrictedSelfAttention
from seqkeras.shapes import require_positive
from seqkeras.transformer.feed_forward import FeedForward
from seqkeras.transformer.layer_norm import LayerNorm
from seqkeras.values import build_once

NORMS = ("layer", "rms")


def require_heads(layer, hidden_dim, num_heads, head_dim=None):
    """Raise a ValueError unless num_heads divides hidden_dim, or heads have a size of their own."""
    require_positive(layer, hidden_dim=hidden_dim, num_heads=num_heads)
    if head_dim is not None:
        require_positive(layer, head_dim=head_dim)
    elif hidden_dim % num_heads:
        raise ValueError(
            f"{type(layer).__name__}: num_heads must divide hidden_dim; received "
            f"num_heads={num_heads}, hidden_dim={hidden_dim}."
        )


class Block(keras.layers.Layer):
    """Base of the blocks: self-attention, feed-forward, and a residual around each sublayer.

        post-norm: y = norm(x + dropout(sublayer(x)))
        pre-norm:  y = x + dropout(sublayer(norm(x)))

    Args:
        hidden_dim: D.
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
        attention_window: r, the positions that self-attention sees at most; None for all.
        relative_clip: K, the furthest distance that has vectors in self-attention; None for none.
        norm: "layer", or "rms", which neither centres nor adds (Zhang and Sennrich 2019).
        use_bias: whether linear maps add a bias; T5's do not.
        gated: whether the feed-forward layer has a gate.
        head_dim: H; None for D / N.

    Example:
        >>> import numpy as np
        >>> from seqkeras.transformer import EncoderBlock
        >>> block = EncoderBlock(8, 2, 16)  # one of its subclasses
        >>> x = np.ones((1, 3, 8))
        >>> y = block(x)
        >>> tuple(block.self_attention_weights(x).shape)
        (1, 2, 3, 3)
    """

    causal = False

    def __init__(
        self,
        hidden_dim,
        num_heads,
        feed_forward_dim,
        activation="relu",
        pre_norm=False,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        epsilon=1e-5,
        residual_stddev=None,
        attention_window=None,
        relative_clip=None,
        norm="layer",
        use_bias=True,
        gated=False,
        head_dim=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_heads(self, hidden_dim, num_heads, head_dim)
        if norm not in NORMS:
            raise ValueError(
                f"{type(self).__name__}: norm must be one of {NORMS}; received {norm!r}."
            )
        self.options = {
            "hidden_dim": hidden_dim,
            "num_heads": num_heads,
            "feed_forward_dim": feed_forward_dim,
            "activation": activation,
            "pre_norm": pre_norm,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "epsilon": epsilon,
            "residual_stddev": residual_stddev,
            "attention_window": attention_window,
            "relative_clip": relative_clip,
            "norm": norm,
            "use_bias": use_bias,
            "gated": gated,
            "head_dim": head_dim,
        }
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.head_dim = hidden_dim // num_heads if head_dim is None else head_dim
        self.pre_norm = pre_norm
        self.attention_dropout = attention_dropout
        self.epsilon = epsilon
        self.residual_stddev = residual_stddev
        self.attention_window = attention_window
        self.relative_clip = relative_clip
        self.use_bias = use_bias
        self.norm = norm
        self.attention = self._make_self_attention()
        self.attention_norm = self.make_norm(name="attention_norm")
        self.feed_forward = FeedForward(
            feed_forward_dim,
            activation,
            activation_dropout,
            residual_stddev,
            use_bias,
            gated,
            dtype=self.dtype_policy,
            name="feed_forward",
        )
        self.feed_forward_norm = self.make_norm(name="feed_forward_norm")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.supports_masking = True

    def _make_self_attention(self):
        options = {"causal": self.causal, "relative_clip": self.relative_clip}
        if self.attention_window is None:
            return self._make_attention("attention", **options)
        require_positive(self, attention_window=self.attention_window)
        return self._make_attention(
            "attention", RestrictedSelfAttention, window=self.attention_window, **options
        )

    def _make_attention(self, name, kind=MultiHeadAttention, **options):
        return kind(
            self.num_heads,
            self.head_dim,
            output_dim=self.hidden_dim,
            use_bias=self.use_bias,
            dropout=self.attention_dropout,
            output_stddev=self.residual_stddev,
            dtype=self.dtype_policy,
            name=name,
            **options,
        )

    def make_norm(self, **options):
        """Return a layer of the block's normalisation, with further options of the layer."""
        options = {"dtype": self.dtype_policy, **options}
        if self.norm == "rms":
            return keras.layers.RMSNormalization(epsilon=self.epsilon, **options)
        return LayerNorm(self.epsilon, **options)

    def _require_width(self, sequence_shape):
        if len(sequence_shape) != 3 or sequence_shape[-1] != self.hidden_dim:
            raise ValueError(
                f"{type(self).__name__}: sequence must have shape (batch, length, "
                f"{self.hidden_dim}); received {tuple(sequence_shape)}."
            )

    def _build_shared(self, shape):
        build_once(self.attention, *self._read_by_attention(shape))
        for layer in (self.attention_norm, self.feed_forward, self.feed_forward_norm):
            build_once(layer, shape)

    def _attend_to_itself(
        self, x, attention_mask, training, causal=None, distance_bias=None, **prefix_lengths
    ):
        h = self._enter(self.attention_norm, x)
        y = self.attention(
            *self._read_by_attention(h),
            attention_mask=attention_mask,
            training=training,
            causal=causal,
            distance_bias=distance_bias,
            **prefix_lengths,
        )
        return self._leave(self.attention_norm, x, y, training)

    def self_attention_weights(
        self, sequence, attention_mask=None, causal=None, distance_bias=None
    ):
        """Return (B, N, T, T): attention weights of each head, for plots.

        Args:
            sequence: (B, T, D), what enters the block.
            attention_mask: (B or 1, T or 1, T) booleans, True = may attend, or None.
            causal: see the call of `DecoderBlock`; None for what the block is.
            distance_bias: a built `DistanceBias`, whose numbers are added to the scores, or None.
        """
        h = self._enter(self.attention_norm, sequence)
        return self.attention.attention_weights(
            *self._read_by_attention(h)[:2],
            attention_mask=attention_mask,
            causal=causal,
            distance_bias=distance_bias,
        )

    def _read_by_attention(self, sequence):
        """Return the arguments of self-attention: query, key and value, or one sequence."""
        return [sequence] * (3 if isinstance(self.attention, MultiHeadAttention) else 1)

    def _enter(self, norm, x):
        """Return the input of a sublayer."""
        return norm(x) if self.pre_norm else x

    def _leave(self, norm, x, y, training=False):
        """Return the result of a sublayer's residual connection, from its input x and its output
        y."""
        x = x + self.dropout(y, training=training)
        return x if self.pre_norm else norm(x)

    def _feed(self, x, training=False):
        y = self.feed_forward(self._enter(self.feed_forward_norm, x), training=training)
        return self._leave(self.feed_forward_norm, x, y, training)

    def get_config(self):
        return {**super().get_config(), **self.options}
