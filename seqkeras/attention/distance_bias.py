"""T5's positions: a bias of attention scores for each range of distances."""

import math

import keras
import numpy as np
from keras import ops

from seqkeras import composites
from seqkeras.shapes import require_positive


@keras.saving.register_keras_serializable("seqkeras")
class DistanceBias(keras.layers.Layer):
    """A bias of attention scores for each head and bucket of distances, which a stack shares.

        score(n, t, s) = q(n, t)^T k(n, s) / sqrt(H) + b(bucket(s - t), n)
        bucket(d), d <= 0:   |d|,                                            |d| < m
                             m + floor((P - m) log(|d| / m) / log(M / m)),   m <= |d| < M
                             P - 1,                                          M <= |d|
        bucket(d), d > 0:    P + bucket(-d) if bidirectional, else 0

    P is all buckets, or half of them if bidirectional; m = P / 2.

    Notation: d is the code's relative_position, key minus query; T5 has no 1 / sqrt(H).

    Args:
        num_heads: N.
        num_buckets: rows of b.
        max_distance: M, from which on all distances are one bucket.
        bidirectional: whether later keys have buckets of their own, as in an encoder.
        stddev: stddev of the normal numbers that b starts as.

    Call arguments:
        distances: (...) integers, query minus key.

    Returns:
        (..., N).

    Raises:
        ValueError: if num_heads is not a positive integer, num_buckets is under 2 or, if
            bidirectional, under 4, or max_distance is not more than m.

    Reference: Raffel et al. 2020, section 2.1, https://arxiv.org/abs/1910.10683;
    https://github.com/tensorflow/mesh (transformer_layers._relative_position_bucket)

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import DistanceBias, MultiHeadAttention
        >>> bias, x = DistanceBias(num_heads=2), np.ones((1, 3, 8))
        >>> tuple(bias(np.array([0, 1, 999])).shape)
        (3, 2)
        >>> tuple(MultiHeadAttention(num_heads=2, head_dim=4)(x, x, x, distance_bias=bias).shape)
        (1, 3, 8)
    """

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        stddev: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(
            self, num_heads=num_heads, num_buckets=num_buckets, max_distance=max_distance
        )
        per_side = num_buckets // 2 if bidirectional else num_buckets
        if per_side < 2 or max_distance <= per_side // 2:
            raise ValueError(
                f"DistanceBias: num_buckets must be at least {4 if bidirectional else 2}, and "
                f"max_distance more than half the buckets of a side; received {num_buckets} and "
                f"{max_distance}."
            )
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.bidirectional = bidirectional
        self.stddev = stddev

    def build(self, distances_shape=None):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.num_buckets, self.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=self.stddev),
        )

    def call(self, distances):
        return composites.rows_of_distances(self.table(), distances)

    def table(self):
        """Return (2M + 1, N), b for each distance from -M to M, key minus query."""
        embeddings = ops.cast(self.embeddings, self.compute_dtype)
        return ops.take(embeddings, self._buckets(), axis=0)

    def _buckets(self):
        P = self.num_buckets // 2 if self.bidirectional else self.num_buckets
        m, M = P // 2, self.max_distance
        far = np.arange(m, M)
        growth = (P - m) * np.log(far / m) / math.log(M / m)
        past = np.concatenate([np.arange(m), m + np.floor(growth + 1e-9), [P - 1]])
        future = P + past[1:] if self.bidirectional else np.zeros(M)
        return np.concatenate([past[::-1], future]).astype("int32")

    def compute_output_shape(self, distances_shape):
        return (*distances_shape, self.num_heads)
