"""How far numbers are from their targets."""

import numpy as np

from seqkeras.metrics.pairs import pairs_of


def relative_error(values, targets):
    """The sum of absolute errors over the sum of the targets' absolute values.

        error = sum |value - target| / sum |target|; the sum of errors if that is 0

    Args:
        values, targets: n numbers or arrays each, an array of its target's shape.

    Returns:
        A number of at least 0.

    Raises:
        ValueError: if there is no value, not one target for each, or one of another shape.

    """
    off = size = 0.0
    for value, target in pairs_of("relative_error", values, targets):
        value, target = np.asarray(value, "float64"), np.asarray(target, "float64")
        if value.shape != target.shape:
            raise ValueError(
                f"relative_error: a target must have the shape of its value, {value.shape}; "
                f"received {target.shape}."
            )
        off += np.abs(value - target).sum()
        size += np.abs(target).sum()
    return off / (size or 1.0)
