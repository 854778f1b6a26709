"""The base class of metrics over real tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor


class OfTokens(keras.metrics.Mean):
    """Base of the metrics that are a mean over real tokens, or over rows that have some.

    A subclass computes in `measure` a value and a weight for each.

    Args:
        ignore_class: the label that counts nothing, as padding; None for none.
    """

    def __init__(
        self,
        ignore_class: int | None = 0,
        name: str | None = None,
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.ignore_class = ignore_class

    def measure(self, y_true: Tensor, y_pred: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return values and their weights, of one shape, from (...) labels, predictions and
        weights."""
        raise NotImplementedError

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        y_true = ops.cast(y_true, "int32")
        y_pred = ops.convert_to_tensor(y_pred)
        if len(y_pred.shape) != len(y_true.shape) + 1:
            raise ValueError(
                f"{type(self).__name__}: y_pred must have an axis of classes after the axes of "
                f"y_true; received {tuple(y_pred.shape)} and {tuple(y_true.shape)}."
            )
        weight = ops.ones_like(y_true, self.dtype)
        if self.ignore_class is not None:
            weight = ops.cast(ops.not_equal(y_true, self.ignore_class), self.dtype)
        if sample_weight is not None:
            row_weight = ops.cast(sample_weight, self.dtype)
            missing = len(weight.shape) - len(row_weight.shape)
            weight = weight * ops.reshape(row_weight, (*ops.shape(row_weight), *[1] * missing))
        values, weight = self.measure(y_true, y_pred, weight)
        # In one row: of several axes Keras takes the mean of each row, so that a token would count
        # less in a batch that is padded further.
        return super().update_state(ops.reshape(values, (-1,)), ops.reshape(weight, (-1,)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "ignore_class": self.ignore_class}
