"""Soft attention: scores -> weights -> context."""

import keras
from keras import ops

from seqkeras.attention.checks import require_attention
from seqkeras.attention.scores import DotScore, Score
from seqkeras.masks import attended, masked_softmax, with_padding
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
        query_mask, key_mask, value_mask: (B, T), (B, S) and (B, S) booleans, True for real steps,
            or None. Keras fills them in where a tensor carries a mask along, as one after
            `Embedding(mask_zero=True)` does, and passes the query's on.

    Returns:
        context (B, T, D) and weights (B, T, S); both are zero where a query may attend to nothing
        or is masked.

    Raises:
        ValueError: if score is not a score, query, key or value is not of rank 3, or a mask is not
            of the shape above.
    """

    def __init__(self, score, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(score, Score):
            raise ValueError(
                f"{type(self).__name__}: score must be a layer of seqkeras.attention such as "
                f"DotScore(); received {score!r}."
            )
        self.score = score
        self.supports_masking = True

    def build(self, query_shape, key_shape, value_shape):
        if not self.score.built:  # a score from a file is built already
            self.score.build(query_shape, key_shape)

    def call(
        self,
        query,
        key,
        value,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
    ):
        masks = attention_mask, query_mask, key_mask, value_mask
        return self._attend_to_real(query, key, value, masks)

    def _attend_to_real(self, query, key, value, masks, **options):
        """Attend under the four masks of a call; the options are further options of `attend`."""
        require_attention(self, query, key, value, masks)
        attention_mask, query_mask, key_mask, value_mask = masks
        mask = with_padding(attention_mask, key_mask, value_mask)
        key, value = self._real(mask, key, value)
        (query,) = without_padding(query_mask, query)
        context, weights = self.attend(query, self.score.prepare(key), value, mask, **options)
        context, weights = without_padding(query_mask, context, weights)
        return context, weights

    def attend(self, query, prepared_key, value, attention_mask=None):
        """Attend to a key that `score.prepare` has seen already."""
        raise NotImplementedError

    def _real(self, attention_mask, *sequences):
        """Return keys and values, with zeros where no query may attend."""
        return without_padding(attended(self._checked(attention_mask)), *sequences)

    def _checked(self, attention_mask):
        """Return the mask as a tensor, or None; every use of a mask goes through here."""
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
        score: a layer of `seqkeras.attention.scores`; `DotScore()` by default, as in Keras.

    Call arguments:
        query: (B, T, Q), T queries at once.
        key: (B, S, K).
        value: (B, S, D); it and the key may hold anything where no query may attend.
        attention_mask: (B or 1, T or 1, S) booleans, True = may attend, or None.
        query_mask, key_mask, value_mask: (B, T), (B, S) and (B, S) booleans, True for real steps,
            or None. Keras fills them in where a tensor carries a mask along, as one after
            `Embedding(mask_zero=True)` does, and passes the query's on.

    Returns:
        context (B, T, D) and weights (B, T, S); both are zero where a query may attend to nothing
        or is masked.

    Raises:
        ValueError: if score is not a score, query, key or value is not of rank 3, or a mask is not
            of the shape above.

    Reference: Bahdanau et al. 2015, section 3.1, https://arxiv.org/abs/1409.0473

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import Attention
        >>> query, key = np.ones((1, 1, 2)), np.ones((1, 3, 2))
        >>> value = np.array([[[1.0], [3.0], [9.0]]])
        >>> mask = np.array([[[True, True, False]]])
        >>> context, weights = Attention()(query, key, value, attention_mask=mask)
        >>> ops.convert_to_numpy(weights).tolist(), ops.convert_to_numpy(context).tolist()
        ([[[0.5, 0.5, 0.0]]], [[[2.0]]])
    """

    def __init__(self, score: Score | None = None, **kwargs):
        super().__init__(DotScore() if score is None else score, **kwargs)

    def attend(self, query, prepared_key, value, attention_mask=None):
        """Attend to a key that `score.prepare` has seen already."""
        scores = self.score.compare(query, prepared_key)  # (B, T, S)
        weights = masked_softmax(scores, self._checked(attention_mask))
        return ops.matmul(weights, value), weights
