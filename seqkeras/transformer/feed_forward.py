"""The position-wise feed-forward network."""

import functools

import keras
from keras import ops

from seqkeras import composites
from seqkeras.shapes import require_positive
from seqkeras.values import normal_or_glorot

ACTIVATIONS = {
    "relu": ops.relu,
    "gelu": composites.gelu,
    "gelu_tanh": functools.partial(composites.gelu, approximate=True),
    "silu": ops.silu,
}


@keras.saving.register_keras_serializable("seqkeras")
class FeedForward(keras.layers.Layer):
    """Two linear maps with an activation between them, the same at every position.

        y = g(x W_1 + b_1) W_2 + b_2
        y = (g(x W_1 + b_1) * (x V + c)) W_2 + b_2, gated

    Args:
        feed_forward_dim: F, the paper's d_ff.
        activation: g, "relu", "gelu", "gelu_tanh", its approximation, or "silu".
        dropout: dropout rate of what the activation gives.
        output_stddev: standard deviation of the normal numbers that W_2 starts as; None for
            Glorot's uniform ones.
        use_bias: whether there are b_1, b_2 and c.
        gated: whether there is a gate.

    Call arguments:
        inputs: (..., D).

    Returns:
        (..., D).

    Raises:
        ValueError: if feed_forward_dim is not positive, or the activation unknown.

    Reference: Vaswani et al. 2017, section 3.3, https://arxiv.org/abs/1706.03762; gated: Shazeer
    2020, https://arxiv.org/abs/2002.05202

    Example:
        >>> import numpy as np
        >>> from seqkeras.transformer import FeedForward
        >>> layer = FeedForward(16, activation="silu", gated=True, use_bias=False)
        >>> tuple(layer(np.ones((2, 5, 8))).shape)
        (2, 5, 8)
        >>> [weights.shape for weights in layer.get_weights()]  # W_1, W_2, V
        [(8, 16), (16, 8), (8, 16)]
    """

    def __init__(
        self,
        feed_forward_dim: int,
        activation: str = "relu",
        dropout: float = 0.0,
        output_stddev: float | None = None,
        use_bias: bool = True,
        gated: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(self, feed_forward_dim=feed_forward_dim)
        require_activation(self, activation)
        self.feed_forward_dim = feed_forward_dim
        self.activation = activation
        self.dropout = dropout
        self.output_stddev = output_stddev
        self.use_bias = use_bias
        self.gated = gated
        self.supports_masking = True
        self.activation_dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)

    def build(self, inputs_shape):
        dim = inputs_shape[-1]
        options = {"use_bias": self.use_bias, "dtype": self.dtype_policy}
        self.inner = keras.layers.Dense(self.feed_forward_dim, name="inner", **options)
        self.outer = keras.layers.Dense(
            dim,
            kernel_initializer=normal_or_glorot(self.output_stddev),
            name="outer",
            **options,
        )
        self.inner.build(inputs_shape)
        if self.gated:
            self.gate = keras.layers.Dense(self.feed_forward_dim, name="gate", **options)
            self.gate.build(inputs_shape)
        self.outer.build((*inputs_shape[:-1], self.feed_forward_dim))

    def call(self, inputs, training=False):
        hidden = ACTIVATIONS[self.activation](self.inner(inputs))  # (..., F)
        if self.gated:
            hidden = hidden * self.gate(inputs)
        return self.outer(self.activation_dropout(hidden, training=training))


def require_activation(layer, activation):
    """Raise a ValueError unless the activation is one of `ACTIVATIONS`."""
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"{type(layer).__name__}: activation must be one of {sorted(ACTIVATIONS)}; "
            f"received {activation!r}."
        )
