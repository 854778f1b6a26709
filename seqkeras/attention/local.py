"""Luong's local attention: each query attends to a window of the source around one position."""

import keras
from keras import ops

from seqkeras.attention.attention import ScoreAttention
from seqkeras.attention.scores import Score
from seqkeras.masks import combine_masks, masked_softmax
from seqkeras.shapes import require_positive, require_steps

KINDS = ("monotonic", "predictive")


@keras.saving.register_keras_serializable("seqkeras")
class LocalAttention(ScoreAttention):
    """Soft attention within [p(t) - D, p(t) + D], for a position p(t) of the source.

        monotonic (local-m)     p(t) = t
                                weights = softmax(score(query, key)) within the window
        predictive (local-p)    p(t) = S sigmoid(v^T tanh(W q(t)))
                                weights = softmax(score(query, key)) gaussian within the window
                                gaussian = exp(-(s - p(t))^2 / (2 sigma^2)), sigma = D / 2

    Notation: q is the paper's h_t; v and W are its v_p and W_p, W square. Positions count from 0,
    as t and s do. S and s count the keys that a query may attend to, as if the others were not
    there: padding may be at the start too. The predictive weights of a query sum to less than one.

    Args:
        score: a layer of `seqkeras.attention.scores`.
        window: D, how far the window reaches on each side.
        kind: "monotonic" or "predictive".

    Call arguments:
        query: (B, T, Q), T queries at once.
        key: (B, S, K).
        value: (B, S, D); it and the key may hold anything where no query may attend.
        attention_mask: (B or 1, T or 1, S) booleans, True = may attend, or None.
        positions: (B or 1, T) numbers, the t of each query, or None for 0, 1, ... T - 1. Only the
            monotonic kind looks at them.
        query_mask, key_mask, value_mask: (B, T), (B, S) and (B, S) booleans, True for real steps,
            or None. Keras fills them in where a tensor carries a mask along, as one after
            `Embedding(mask_zero=True)` does, and passes the query's on.

    Returns:
        context (B, T, D) and weights (B, T, S); both are zero where the window holds no real key
        or the query is masked.

    Raises:
        ValueError: if score is not a score, the window is no positive integer, the kind is another,
            query, key or value is not of rank 3, a mask is not of the shape above, or there is no
            key.

    Reference: Luong et al. 2015, section 3.2, https://arxiv.org/abs/1508.04025

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import DotScore, LocalAttention
        >>> x = np.zeros((1, 4, 2))
        >>> context, weights = LocalAttention(DotScore(), window=1)(x, x, x)
        >>> ops.convert_to_numpy(weights)[0, 0].tolist()  # of t = 0, which sees s = 0 and s = 1
        [0.5, 0.5, 0.0, 0.0]
    """

    def __init__(self, score: Score, window: int, kind: str = "monotonic", **kwargs):
        super().__init__(score, **kwargs)
        require_positive(self, window=window)
        if kind not in KINDS:
            raise ValueError(f"LocalAttention: kind must be one of {KINDS}; received {kind!r}.")
        self.window = window
        self.kind = kind

    def build(self, query_shape, key_shape, value_shape):
        super().build(query_shape, key_shape, value_shape)
        if self.kind == "predictive":
            dim = query_shape[-1]
            self.position_kernel = self.add_weight(name="position_kernel", shape=(dim, dim))
            self.position_scale = self.add_weight(name="position_scale", shape=(dim, 1))

    def call(
        self,
        query,
        key,
        value,
        attention_mask=None,
        positions=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
    ):
        masks = attention_mask, query_mask, key_mask, value_mask
        return self._attend_to_real(query, key, value, masks, positions=positions)

    def attend(self, query, prepared_key, value, attention_mask=None, positions=None):
        """Attend to a key that `score.prepare` has seen already."""
        require_steps(self, key=prepared_key)
        attention_mask = self._checked(attention_mask)
        scores = self.score.compare(query, prepared_key)  # (B, T, S)
        # Positions are counted in float32 at least: float16 tells integers apart up to 2,048 only.
        dtype = keras.backend.result_type(scores.dtype, "float32")
        steps, num_keys = self._places(attention_mask, ops.shape(scores)[-1], dtype)
        if self.kind == "predictive":
            centers = self._predicted(query, num_keys)
        elif positions is None:
            centers = ops.cast(ops.arange(ops.shape(scores)[1])[None], dtype)
        else:
            centers = ops.cast(positions, dtype)
        distances = steps - centers[..., None]  # (B or 1, T, S)
        near = ops.abs(distances) <= self.window
        weights = masked_softmax(scores, combine_masks(attention_mask, near))
        if self.kind == "predictive":
            sigma = self.window / 2
            gaussian = ops.exp(-(distances**2) / (2 * sigma**2))
            weights = weights * ops.cast(gaussian, weights.dtype)
        return ops.matmul(weights, value), weights

    def _places(self, attention_mask, source_length, dtype):
        """Return s of each key, (B or 1, T or 1, S), and S, (B or 1, T or 1)."""
        if attention_mask is None:
            steps = ops.cast(ops.arange(source_length), dtype)[None, None]
        else:
            steps = ops.cumsum(ops.cast(attention_mask, dtype), axis=-1) - 1
        return steps, steps[..., -1] + 1

    def _predicted(self, query, num_keys):
        """Return (B, T) positions p(t)."""
        hidden = ops.tanh(ops.matmul(query, self.position_kernel))
        share = ops.sigmoid(ops.matmul(hidden, self.position_scale))[..., 0]
        return ops.cast(share, num_keys.dtype) * num_keys

    def get_config(self):
        return {**super().get_config(), "window": self.window, "kind": self.kind}
