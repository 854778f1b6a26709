"""Attention scores: how well a query fits a key.

A score is computed in two parts, so that a decoder can do the first one once per source:

    prepare(key) -> prepared key        compare(query, prepared key) -> scores
"""

import keras
from keras import ops

from seqkeras.shapes import require_sequence


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

    def call(self, query, key):
        return self.compare(query, self.prepare(key))


@keras.saving.register_keras_serializable("seqkeras")
class AdditiveScore(Score):
    """Bahdanau's additive score, a network with one hidden layer.

        score(q, k) = v^T tanh(W q + U k)

    Notation: q and k are the paper's s_{i-1} and h_j; v, W, U its v_a, W_a, U_a.

    Args:
        units: size of the hidden layer.

    Reference: Bahdanau et al. 2015, appendix A.1.2, https://arxiv.org/abs/1409.0473
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, query_shape, key_shape):
        require_sequence(self, query=query_shape, key=key_shape)
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
        projected = ops.matmul(query, self.query_kernel)  # (B, T, units)
        hidden = ops.tanh(projected[:, :, None] + prepared_key[:, None])  # (B, T, S, units)
        return ops.squeeze(ops.matmul(hidden, self.scale), axis=-1)
