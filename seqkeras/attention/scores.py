"""Attention scores: how well a query fits a key.

A score is computed in two parts, so that a decoder can do the first one once per source:

    prepare(key) -> prepared key        compare(query, prepared key) -> scores
"""

import keras
from keras import ops

from seqkeras.shapes import require_positive, require_sequence


class Score(keras.layers.Layer):
    """Base of the scores; a subclass fills `prepare` and `compare`.

    Call arguments:
        query: (B, T, Q) decoder states.
        key: (B, S, K) encoder states.

    Returns:
        (B, T, S) scores, before masking and softmax.

    Raises:
        ValueError: if query or key is not of rank 3.
    """

    def build(self, query_shape, key_shape):
        require_sequence(self, query=query_shape, key=key_shape)

    def call(self, query, key):
        require_sequence(self, query=query.shape, key=key.shape)
        return self.compare(query, self.prepare(key))


@keras.saving.register_keras_serializable("seqkeras")
class AdditiveScore(Score):
    """Bahdanau's additive score, a network with one hidden layer.

        score(q, k) = v^T tanh(W q + U k)

    Notation: q and k are the paper's s_{i-1} and h_j; v, W, U its v_a, W_a, U_a.

    Args:
        units: size of the hidden layer.

    Raises:
        ValueError: if units is not a positive integer.

    Reference: Bahdanau et al. 2015, appendix A.1.2, https://arxiv.org/abs/1409.0473
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, units=units)
        self.units = units

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        shapes = {
            "query_kernel": (query_shape[-1], self.units),
            "key_kernel": (key_shape[-1], self.units),
            "scale": (self.units, 1),
        }
        for name, shape in shapes.items():
            setattr(self, name, self.add_weight(name=name, shape=shape))

    def prepare(self, key):
        return ops.matmul(key, self.key_kernel)  # (B, S, units)

    def compare(self, query, prepared_key):
        return _hidden_layer(ops.matmul(query, self.query_kernel), prepared_key, self.scale)


@keras.saving.register_keras_serializable("seqkeras")
class ConcatScore(Score):
    """Luong's "concat" score, a hidden layer over the two vectors side by side.

        score(q, k) = v^T tanh(W [q; k])

    Notation: q and k are the paper's h_t and h_s; v and W its v_a and W_a. W [q; k] is the sum of a
    product with q and one with k, so this is the additive score with both kernels in one matrix.

    Args:
        units: size of the hidden layer.

    Raises:
        ValueError: if units is not a positive integer.

    Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        require_positive(self, units=units)
        self.units = units

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        self.kernel = self.add_weight(
            name="kernel", shape=(query_shape[-1] + key_shape[-1], self.units)
        )
        self.scale = self.add_weight(name="scale", shape=(self.units, 1))

    def prepare(self, key):
        return ops.matmul(key, self.kernel[-key.shape[-1] :])  # (B, S, units)

    def compare(self, query, prepared_key):
        projected = ops.matmul(query, self.kernel[: query.shape[-1]])
        return _hidden_layer(projected, prepared_key, self.scale)


@keras.saving.register_keras_serializable("seqkeras")
class GeneralScore(Score):
    """Luong's "general" attention score, a learned bilinear form.

        score(q, k) = q^T W k

    Notation: q and k are the paper's h_t and h_s; W is its W_a.

    Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025
    """

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        self.kernel = self.add_weight(name="kernel", shape=(query_shape[-1], key_shape[-1]))

    def prepare(self, key):
        return ops.matmul(key, ops.transpose(self.kernel))  # (B, S, Q)

    def compare(self, query, prepared_key):
        return _dot(query, prepared_key)


@keras.saving.register_keras_serializable("seqkeras")
class DotScore(Score):
    """Luong's "dot" score.

        score(q, k) = q^T k

    Raises:
        ValueError: if query and key have different dims.

    Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025
    """

    def build(self, query_shape, key_shape):
        super().build(query_shape, key_shape)
        if query_shape[-1] != key_shape[-1]:
            raise ValueError(
                f"{type(self).__name__}: query and key must have the same dim; received "
                f"{query_shape[-1]} and {key_shape[-1]}. GeneralScore takes different ones."
            )

    def prepare(self, key):
        return key

    def compare(self, query, prepared_key):
        return _dot(query, prepared_key)


@keras.saving.register_keras_serializable("seqkeras")
class ScaledDotScore(DotScore):
    """The score of the Transformer: a dot product that stays of one size as dims grow.

        score(q, k) = q^T k / sqrt(d), d the dim of both

    Raises:
        ValueError: if query and key have different dims.

    Reference: Vaswani et al. 2017, section 3.2.1, https://arxiv.org/abs/1706.03762
    """

    def compare(self, query, prepared_key):
        return _dot(query * query.shape[-1] ** -0.5, prepared_key)


def _dot(query, key):
    return ops.matmul(query, ops.transpose(key, (0, 2, 1)))  # (B, T, S)


def _hidden_layer(projected_query, projected_key, scale):
    hidden = ops.tanh(projected_query[:, :, None] + projected_key[:, None])  # (B, T, S, units)
    return ops.squeeze(ops.matmul(hidden, scale), axis=-1)
