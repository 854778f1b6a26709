"""Accuracy of predictions: token by token, and of whole sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
from keras import ops

from seqkeras.metrics.tokens import OfTokens

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor


@keras.saving.register_keras_serializable("seqkeras")
class TokenAccuracy(OfTokens):
    """The share of real tokens whose most probable class is the label.

        accuracy = sum of w [argmax_v p(v) = y] / sum of w,    w = [y is no padding]

    Keras's own "accuracy" counts padding, too.

    Args:
        ignore_class: label that is left out, such as padding; None leaves no label out.
        name: name of the metric in logs.
        dtype: dtype of the sums, a name or a policy; None for Keras's own.

    Call arguments:
        y_true: (...) integers y.
        y_pred: (..., V) logits or probabilities p.
        sample_weight: factors of w, (...) or of its first axes; None for 1.

    Returns:
        `result()` is a scalar from 0 to 1.

    Raises:
        ValueError: if y_pred does not have one axis more than y_true.

    Example:
        >>> import numpy as np
        >>> from seqkeras.metrics import TokenAccuracy
        >>> accuracy = TokenAccuracy()
        >>> accuracy.update_state(np.array([[1, 2, 0]]), np.eye(3)[[[1, 1, 0]]])  # 0 is padding
        >>> float(accuracy.result())
        0.5
    """

    def __init__(
        self,
        ignore_class: int | None = 0,
        name: str = "token_accuracy",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(ignore_class, name, dtype)

    def measure(self, y_true: Tensor, y_pred: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        return _right(y_true, y_pred, weight.dtype), weight


@keras.saving.register_keras_serializable("seqkeras")
class SequenceAccuracy(OfTokens):
    """The share of rows all of whose real tokens are right.

        accuracy = mean over rows of min over t of [argmax_v p(t, v) = y(t)]

    A row without a real token is left out.

    Args:
        ignore_class: label that is left out, such as padding; None leaves no label out.
        name: name of the metric in logs.
        dtype: dtype of the sums, a name or a policy; None for Keras's own.

    Call arguments:
        y_true: (B, ...) integers y.
        y_pred: (B, ..., V) logits or probabilities p.
        sample_weight: a token of weight 0 is left out; any other weight counts as 1.

    Returns:
        `result()` is a scalar from 0 to 1.

    Raises:
        ValueError: if y_pred does not have one axis more than y_true.

    Example:
        >>> import numpy as np
        >>> from seqkeras.metrics import SequenceAccuracy
        >>> accuracy = SequenceAccuracy()
        >>> y_true, answers = np.array([[1, 2, 0], [1, 1, 2]]), np.array([[1, 2, 1], [1, 1, 1]])
        >>> accuracy.update_state(y_true, np.eye(3)[answers])
        >>> float(accuracy.result())  # the first row is right, whatever stands at its padding
        0.5
    """

    def __init__(
        self,
        ignore_class: int | None = 0,
        name: str = "sequence_accuracy",
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(ignore_class, name, dtype)

    def measure(self, y_true: Tensor, y_pred: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        steps = tuple(range(1, len(y_true.shape)))
        real = weight > 0
        right = ops.where(real, _right(y_true, y_pred, weight.dtype), 1)
        return ops.min(right, axis=steps), ops.cast(ops.any(real, axis=steps), weight.dtype)


def _right(y_true, y_pred, dtype):
    return ops.cast(ops.equal(ops.cast(ops.argmax(y_pred, axis=-1), "int32"), y_true), dtype)
