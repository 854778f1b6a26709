"""Perplexity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
from keras import ops

from seqkeras.metrics.tokens import OfTokens

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor


@keras.saving.register_keras_serializable("seqkeras")
class Perplexity(OfTokens):
    """The exponential of the mean cross-entropy of real tokens.

        perplexity = exp(-sum of w log softmax(logits)_y / sum of w),    w = [y is no padding]

    Args:
        ignore_class: label that is left out, such as padding; None leaves no label out.
        name: name of the metric in logs.
        dtype: dtype of the sums, a name or a policy; None for Keras's own.

    Call arguments:
        y_true: (...) integers y.
        y_pred: (..., V) logits.
        sample_weight: factors of w, (...) or of its first axes; None for 1.

    Returns:
        `result()` is a scalar of at least 1.

    Raises:
        ValueError: if y_pred does not have one axis more than y_true.

    Reference: Jelinek et al. 1977, https://doi.org/10.1121/1.2016299

    Example:
        >>> import numpy as np
        >>> from seqkeras.metrics import Perplexity
        >>> perplexity = Perplexity()
        >>> perplexity.update_state(np.array([[3, 1, 0]]), np.zeros((1, 3, 5)))  # five equal logits
        >>> round(float(perplexity.result()), 3)
        5.0
    """

    def __init__(
        self,
        ignore_class: int | None = 0,
        name: str = "perplexity",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(ignore_class, name, dtype)

    def measure(self, y_true: Tensor, y_pred: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        labels = ops.where(weight > 0, y_true, 0)  # -1 has no logit
        log_probs = ops.log_softmax(ops.cast(y_pred, weight.dtype))
        chosen = ops.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
        return -chosen, weight

    def result(self) -> Tensor:
        return ops.exp(super().result())
