"""Soft attention: scores -> weights -> context."""

import keras
from keras import ops

from seqkeras.attention.masks import attended, masked_softmax
from seqkeras.attention.scores import Score
from seqkeras.values import without_padding


class ScoreAttention(keras.layers.Layer):
    """Base of the attentions with any score; a subclass fills `attend`.

    Args:
        score: a layer of `seqkeras.attention.scores`.

    Call arguments:
        query: (B, T, Q), T queries at once.
        key: (B, S, K).
        value: (B, S, D); it and the key may hold anything where no query may attend.
        attention_mask: (B or 1, T or 1, S) booleans, True = may attend, or None.

    Returns:
        context (B, T, D) and weights (B, T, S); both are zero where a query may attend to nothing.

    Raises:
        ValueError: if score is not a score, or attention_mask not of rank 3.
    """

    def __init__(self, score, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(score, Score):
            raise ValueError(
                f"{type(self).__name__}: score must be a layer of seqkeras.attention such as "
                f"DotScore(); received {score!r}."
            )
        self.score = score

    def build(self, query_shape, key_shape, value_shape):
        if not self.score.built:  # as a score from a file is
            self.score.build(query_shape, key_shape)

    def call(self, query, key, value, attention_mask=None):
        key, value = self._real(attention_mask, key, value)
        return self.attend(query, self.score.prepare(key), value, attention_mask)

    def attend(self, query, prepared_key, value, attention_mask=None):
        """Attention to a key that `score.prepare` has seen already."""
        raise NotImplementedError

    def _real(self, attention_mask, *sequences):
        """Keys and values, with zeros where no query may attend."""
        return without_padding(attended(self._checked(attention_mask)), *sequences)

    def _checked(self, attention_mask):
        """The mask as a tensor, or None; every use of a mask goes through here."""
        if attention_mask is None:
            return None
        attention_mask = ops.convert_to_tensor(attention_mask)
        if len(attention_mask.shape) != 3:
            raise ValueError(
                f"{type(self).__name__}: attention_mask must have shape (batch, target, source); "
                f"received {tuple(attention_mask.shape)}. A padding mask (batch, source) becomes "
                "one of attention by mask[:, None]."
            )
        return attention_mask

    def get_config(self):
        return {
            **super().get_config(),
            "score": keras.saving.serialize_keras_object(self.score),
        }

    @classmethod
    def from_config(cls, config):
        return cls(
            **{
                **config,
                "score": keras.saving.deserialize_keras_object(config["score"]),
            }
        )


@keras.saving.register_keras_serializable("seqkeras")
class Attention(ScoreAttention):
    """Soft attention with any score.

        weights = softmax(score(query, key))        context = sum over s of weights(s) value(s)

    Args:
        score: a layer of `seqkeras.attention.scores`.

    Call arguments:
        query: (B, T, Q), T queries at once.
        key: (B, S, K).
        value: (B, S, D); it and the key may hold anything where no query may attend.
        attention_mask: (B or 1, T or 1, S) booleans, True = may attend, or None.

    Returns:
        context (B, T, D) and weights (B, T, S); both are zero where a query may attend to nothing.

    Raises:
        ValueError: if score is not a score, or attention_mask not of rank 3.

    Reference: Bahdanau et al. 2015, section 3.1, https://arxiv.org/abs/1409.0473
    """

    def attend(self, query, prepared_key, value, attention_mask=None):
        """Attention to a key that `score.prepare` has seen already."""
        scores = self.score.compare(query, prepared_key)  # (B, T, S)
        weights = masked_softmax(scores, self._checked(attention_mask))
        return ops.matmul(weights, value), weights
