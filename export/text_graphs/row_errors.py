"""Rows of a batch that are refused: each has an error, and all others are answered."""

import tensorflow as tf

from seqkeras.serving.manifest import TensorSpec

ERROR = "error"


def none_of(rows):
    """Return (B,) errors of rows that are all well, as many as `rows` has."""
    return tf.fill([tf.shape(rows)[0]], "")


def errors_of(*conditions):
    """Return (B,) strings: the first message whose condition is false for a row, or "".

    Args:
        conditions: ((B,) booleans, the message if one is false).
    """
    return first_of(*(tf.where(holds, "", message) for holds, message in conditions))


def first_of(*errors):
    """Return (B,) strings: the first error of each row that is not ""."""
    first, *others = errors
    for other in others:
        first = tf.where(first == "", other, first)
    return first


def first_in(groups):
    """Return (B,) strings: the first error in each row of (B, C)."""
    place = tf.argmax(tf.cast(groups != "", tf.int32), axis=1)
    return tf.gather(groups, place, batch_dims=1)


def with_errors(outputs, errors):
    """Return outputs by name without the values of refused rows, and (B,) `errors` as "error".

    Such a row has "" for a string, 0 for a number of float32, and -1 for an integer.
    """
    told = {}
    for name, values in outputs.items():
        nothing = {tf.string: "", tf.float32: 0.0}.get(values.dtype, -1)
        well = tf.reshape(errors == "", [-1, *[1] * (values.shape.rank - 1)])
        told[name] = tf.where(well, values, tf.constant(nothing, values.dtype))
    return {**told, ERROR: errors}


def error():
    """Return the spec of the errors of rows."""
    return TensorSpec(ERROR, "string", ("batch",))
