"""Rows of a batch that are refused: each has an error, and all others are answered."""

from collections.abc import Mapping

import tensorflow as tf

from seqkeras.tensors import Tensor

ERROR = "error"
NOT_FINITE = "the model gives no finite number for it."


def none_of(rows: Tensor) -> Tensor:
    """Return (B,) errors of rows that are all well, as many as `rows` has."""
    return tf.fill([tf.shape(rows)[0]], "")


def errors_of(*conditions: tuple[Tensor, str]) -> Tensor:
    """Return (B,) strings: the first message whose (B,) condition is false for a row, or ""."""
    return first_of(*(tf.where(holds, "", message) for holds, message in conditions))


def first_of(*errors: Tensor) -> Tensor:
    """Return (B,) strings: the first error of each row that is not ""."""
    first, *others = errors
    for other in others:
        first = tf.where(first == "", other, first)
    return first


def first_in(groups: Tensor) -> Tensor:
    """Return (B,) strings: the first error in each row of (B, C)."""
    index = tf.argmax(tf.cast(groups != "", tf.int32), axis=1)
    return tf.gather(groups, index, batch_dims=1)


def with_errors(outputs: Mapping[str, Tensor], errors: Tensor) -> dict[str, Tensor]:
    """Return outputs by name without the values of refused rows, and (B,) `errors` as "error".

    Such a row has "" for a string, 0 for a number of float32, and -1 for an integer. A row whose
    numbers are not finite is refused; the score of an answer that there is not may be -inf.
    """
    for name, values in outputs.items():
        if values.dtype == tf.float32:
            is_missing = (values == -float("inf")) & (name == "scores" and "texts" in outputs)
            is_well = tf.math.is_finite(values) | is_missing
            is_well = tf.reduce_all(is_well, axis=[*range(1, values.shape.rank)])
            errors = first_of(errors, tf.where(is_well, "", NOT_FINITE))
    outcomes = {}
    for name, values in outputs.items():
        nothing = {tf.string: "", tf.float32: 0.0}.get(values.dtype, -1)
        well = tf.reshape(errors == "", [-1, *[1] * (values.shape.rank - 1)])
        outcomes[name] = tf.where(well, values, tf.constant(nothing, values.dtype))
    return {**outcomes, ERROR: errors}
