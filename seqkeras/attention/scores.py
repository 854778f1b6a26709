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

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import Attention
        >>> from seqkeras.attention.scores import Score
        >>> class NegativeDistance(Score):
        ...     def prepare(self, key):
        ...         return key
        ...     def compare(self, query, prepared_key):
        ...         difference = query[:, :, None] - prepared_key[:, None]  # (B, T, S, D)
        ...         return -ops.sum(ops.square(difference), axis=-1)
        >>> query, key = np.array([[[9.0]]]), np.array([[[0.0], [9.0]]])
        >>> context, _ = Attention(NegativeDistance())(query, key, value=key)
        >>> float(context[0, 0, 0])  # all weight is on the nearest key
        9.0
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

    Call arguments:
        query: (B, T, Q) decoder states.
        key: (B, S, K) encoder states.

    Returns:
        (B, T, S) scores, before masking and softmax.

    Raises:
        ValueError: if units is not a positive integer, or query or key is not of rank 3.

    Reference: Bahdanau et al. 2015, appendix A.1.2, https://arxiv.org/abs/1409.0473

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import AdditiveScore
        >>> query, key = np.ones((2, 3, 7)), np.ones((2, 5, 4))  # of different dims
        >>> tuple(AdditiveScore(8)(query, key).shape)
        (2, 3, 5)
    """

    def __init__(self, units: int, **kwargs):
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

    Call arguments:
        query: (B, T, Q) decoder states.
        key: (B, S, K) encoder states.

    Returns:
        (B, T, S) scores, before masking and softmax.

    Raises:
        ValueError: if units is not a positive integer, or query or key is not of rank 3.

    Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import ConcatScore
        >>> score = ConcatScore(8)
        >>> scores = score(query=np.ones((2, 3, 7)), key=np.ones((2, 5, 4)))
        >>> [weights.shape for weights in score.get_weights()]  # W and v
        [(11, 8), (8, 1)]
    """

    def __init__(self, units: int, **kwargs):
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

    Call arguments:
        query: (B, T, Q) decoder states.
        key: (B, S, K) encoder states.

    Returns:
        (B, T, S) scores, before masking and softmax.

    Raises:
        ValueError: if query or key is not of rank 3.

    Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import GeneralScore
        >>> score = GeneralScore()
        >>> tuple(score(query=np.ones((2, 3, 7)), key=np.ones((2, 5, 4))).shape)
        (2, 3, 5)
        >>> tuple(score.kernel.shape)
        (7, 4)
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

    Call arguments:
        query: (B, T, Q) decoder states.
        key: (B, S, Q) encoder states.

    Returns:
        (B, T, S) scores, before masking and softmax.

    Raises:
        ValueError: if query or key is not of rank 3, or they have different dims.

    Reference: Luong et al. 2015, section 3.1, https://arxiv.org/abs/1508.04025

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import DotScore
        >>> query, key = np.array([[[1.0, 2.0]]]), np.array([[[3.0, 4.0], [5.0, 6.0]]])
        >>> ops.convert_to_numpy(DotScore()(query, key)).tolist()
        [[[11.0, 17.0]]]
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

    Call arguments:
        query: (B, T, Q) decoder states.
        key: (B, S, Q) encoder states.

    Returns:
        (B, T, S) scores, before masking and softmax.

    Raises:
        ValueError: if query or key is not of rank 3, or they have different dims.

    Reference: Vaswani et al. 2017, section 3.2.1, https://arxiv.org/abs/1706.03762

    Example:
        >>> import numpy as np
        >>> from seqkeras.attention import ScaledDotScore
        >>> scores = ScaledDotScore()(np.ones((1, 1, 4)), np.ones((1, 1, 4)))
        >>> float(scores[0, 0, 0])  # 4 / sqrt(4)
        2.0
    """

    def compare(self, query, prepared_key):
        return _dot(query * query.shape[-1] ** -0.5, prepared_key)


def _dot(query, key):
    return ops.matmul(query, ops.transpose(key, (0, 2, 1)))  # (B, T, S)


def _hidden_layer(projected_query, projected_key, scale):
    hidden = ops.tanh(projected_query[:, :, None] + projected_key[:, None])  # (B, T, S, units)
    return ops.squeeze(ops.matmul(hidden, scale), axis=-1)
