"""Masks are booleans, True = may attend; softmax under a mask."""

import keras
from keras import ops


def padding_mask(lengths, length):
    """(B, length) mask of sequences padded on the right.

    Args:
        lengths: (B,) integers, the number of real steps of each row.
        length: the padded length, a number or a scalar tensor.
    """
    lengths = ops.convert_to_tensor(lengths)
    return ops.cast(ops.arange(length), lengths.dtype)[None, :] < lengths[:, None]


def lengths_of(mask):
    """(B,) int32 lengths of a right-padded (B, T) mask; -1 for a row padded in any other way."""
    steps = ops.cast(mask, "int32")
    lengths = ops.sum(steps, axis=1)
    right_padded = ops.all(steps[:, 1:] <= steps[:, :-1], axis=1)
    return ops.where(right_padded, lengths, -1)


def masked_softmax(scores, mask=None):
    """Softmax over the last axis where the mask allows; a row with nothing allowed is all zeros.

        weights = any(mask) * softmax(where(mask, scores, -large))

    Args:
        scores: (..., S).
        mask: booleans that broadcast to the scores, True = may attend, or None.
    """
    if mask is None:
        return ops.softmax(scores, axis=-1)
    # Far under any real score, and finite in the dtype: float16 ends at 65,504.
    large = 3e4 if keras.backend.standardize_dtype(scores.dtype) == "float16" else 1e9
    weights = ops.softmax(ops.where(mask, scores, ops.cast(-large, scores.dtype)), axis=-1)
    return weights * ops.cast(ops.any(mask, axis=-1, keepdims=True), scores.dtype)
