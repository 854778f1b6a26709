"""Errors of numbers against their targets."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from seqkeras.metrics.pairs import pairs_of


def mean_absolute_error(
    values: np.ndarray, targets: np.ndarray, axis: int | tuple[int, ...] | None = None
) -> Any:
    """Return the mean over known targets of |value - target|.

    Args:
        values, targets: arrays of one shape; a target that is NaN is unknown, and counts nothing.
        axis: over which; None for all.

    Returns:
        A float64, or an array of them; NaN where no target is known.
    """
    return _mean(np.abs(np.subtract(values, targets, dtype="float64")), axis)


def root_mean_squared_error(
    values: np.ndarray, targets: np.ndarray, axis: int | tuple[int, ...] | None = None
) -> Any:
    """Return the root of the mean over known targets of (value - target)^2; see
    `mean_absolute_error` for the arguments."""
    return np.sqrt(_mean(np.square(np.subtract(values, targets, dtype="float64")), axis))


def pinball_loss(
    values: np.ndarray,
    targets: np.ndarray,
    quantile: float,
    axis: int | tuple[int, ...] | None = None,
) -> Any:
    """Return the mean over known targets of max(q (y - p), (q - 1) (y - p)), smallest where p is
    the quantile q of y; see `mean_absolute_error` for the arguments.

    Reference: Koenker and Bassett 1978, section 3, https://doi.org/10.2307/1913643
    """
    error = np.subtract(targets, values, dtype="float64")
    return _mean(np.maximum(quantile * error, (quantile - 1) * error), axis)


def coverage(
    low: np.ndarray,
    high: np.ndarray,
    targets: np.ndarray,
    axis: int | tuple[int, ...] | None = None,
) -> Any:
    """Return the share of known targets with low <= target <= high; see `mean_absolute_error` for
    the arguments."""
    targets = np.asarray(targets, "float64")
    inside = ((low <= targets) & (targets <= high)).astype("float64")
    return _mean(np.where(np.isnan(targets), np.nan, inside), axis)


def naive_error(series: np.ndarray, period: int = 1) -> float:
    """Return what a mean absolute scaled error is measured by: how far a series is on average from
    its value one period before.

        MASE = mean |y - p| / (mean over t of |x(t) - x(t - period)|)

    Args:
        series: (length,) numbers x of the training part; NaN where one is unknown.

    Reference: Hyndman and Koehler 2006, https://doi.org/10.1016/j.ijforecast.2006.03.001
    """
    series = np.asarray(series, "float64")
    return float(mean_absolute_error(series[period:], series[:-period]))


def _mean(numbers, axis):
    known = ~np.isnan(numbers)
    with np.errstate(invalid="ignore"):
        return np.where(known, numbers, 0).sum(axis) / np.float64(known.sum(axis))


def relative_error(values: Iterable[Any], targets: Iterable[Any]) -> float:
    """Return the sum of absolute errors over the sum of the targets' absolute values.

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
