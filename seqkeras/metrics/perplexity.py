"""Perplexity."""

import keras
from keras import ops

from seqkeras.metrics.tokens import OfTokens


@keras.saving.register_keras_serializable("seqkeras")
class Perplexity(OfTokens):
    """The exponential of the mean cross-entropy of real tokens.

        perplexity = exp(-sum of w log softmax(logits)_y / sum of w),    w = [y is no padding]

    Args:
        ignore_class: the label that counts nothing, as padding; None for none.

    Call arguments:
        y_true: (...) integers y.
        y_pred: (..., V) logits.
        sample_weight: factors of w, (...) or of its first axes; None for 1.

    Raises:
        ValueError: if y_pred has not one axis more than y_true.

    Reference: Jelinek et al. 1977, https://doi.org/10.1121/1.2016299
    """

    def __init__(self, ignore_class=0, name="perplexity", dtype=None):
        super().__init__(ignore_class, name, dtype)

    def measure(self, y_true, y_pred, weight):
        labels = ops.where(weight > 0, y_true, 0)  # -1 has no logit
        log_probs = ops.log_softmax(ops.cast(y_pred, weight.dtype))
        chosen = ops.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
        return -chosen, weight

    def result(self):
        return ops.exp(super().result())
