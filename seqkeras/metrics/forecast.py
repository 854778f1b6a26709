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
        values, targets: arrays of one shape; a target that is NaN is unknown, and is left out.
        axis: axes over which the mean is taken; None for all.

    Returns:
        A float64, or an array of them; NaN where no target is known.

    Raises:
        ValueError: if values and targets do not broadcast to one shape.

    Example:
        >>> from seqkeras.metrics import mean_absolute_error
        >>> nan = float("nan")
        >>> float(mean_absolute_error([1.0, 2.0, 3.0], [2.0, 2.0, nan]))
        0.5
        >>> mean_absolute_error([[1.0, 2.0], [3.0, 4.0]], [[1.0, 3.0], [5.0, nan]], axis=0).tolist()
        [1.0, 1.0]
    """
    return _mean(np.abs(np.subtract(values, targets, dtype="float64")), axis)


def root_mean_squared_error(
    values: np.ndarray, targets: np.ndarray, axis: int | tuple[int, ...] | None = None
) -> Any:
    """Return the root of the mean over known targets of (value - target)^2.

    Args:
        values, targets, axis: see `mean_absolute_error`.

    Returns:
        A float64, or an array of them; NaN where no target is known.

    Raises:
        ValueError: if values and targets do not broadcast to one shape.

    Example:
        >>> from seqkeras.metrics import root_mean_squared_error
        >>> float(root_mean_squared_error([1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 5.0]))
        2.0
    """
    return np.sqrt(_mean(np.square(np.subtract(values, targets, dtype="float64")), axis))


def pinball_loss(
    values: np.ndarray,
    targets: np.ndarray,
    quantile: float,
    axis: int | tuple[int, ...] | None = None,
) -> Any:
    """Return the quantile loss of forecasts, smallest where p is the quantile q of y.

        loss = mean over known targets of max(q (y - p), (q - 1) (y - p))

    Args:
        values: p.
        targets: y, of the same shape; a target that is NaN is unknown, and is left out.
        quantile: q, from 0 to 1.
        axis: see `mean_absolute_error`.

    Returns:
        A float64, or an array of them; NaN where no target is known.

    Raises:
        ValueError: if values and targets do not broadcast to one shape.

    Reference: Koenker and Bassett 1978, section 3, https://doi.org/10.2307/1913643

    Example:
        >>> from seqkeras.metrics import pinball_loss
        >>> float(pinball_loss([10.0], [20.0], quantile=0.75))  # too low costs more
        7.5
        >>> float(pinball_loss([20.0], [10.0], quantile=0.75))
        2.5
    """
    error = np.subtract(targets, values, dtype="float64")
    return _mean(np.maximum(quantile * error, (quantile - 1) * error), axis)


def coverage(
    low: np.ndarray,
    high: np.ndarray,
    targets: np.ndarray,
    axis: int | tuple[int, ...] | None = None,
) -> Any:
    """Return the share of known targets with low <= target <= high.

    Args:
        low, high: bounds of the band, in the shape of the targets.
        targets, axis: see `mean_absolute_error`.

    Returns:
        A float64 from 0 to 1, or an array of them; NaN where no target is known.

    Raises:
        ValueError: if the three do not broadcast to one shape.

    Example:
        >>> import numpy as np
        >>> from seqkeras.metrics import coverage
        >>> targets = np.array([1.0, 5.0, 9.0, float("nan")])
        >>> float(coverage(np.full(4, 4.0), np.full(4, 9.0), targets))
        0.6666666666666666
    """
    targets = np.asarray(targets, "float64")
    inside = ((low <= targets) & (targets <= high)).astype("float64")
    return _mean(np.where(np.isnan(targets), np.nan, inside), axis)


def naive_error(series: np.ndarray, period: int = 1) -> float:
    """Return the mean error of a naive forecast, which repeats the value of one period before.

        naive error = mean over t of |x(t) - x(t - period)|
        MASE = mean |y - p| / naive error

    Args:
        series: (length,) numbers x of the training part; NaN where one is unknown.
        period: steps after which the series repeats, such as 24 hours; 1 for the step before.

    Returns:
        A number of at least 0; NaN where no two values are known.

    Reference: Hyndman and Koehler 2006, https://doi.org/10.1016/j.ijforecast.2006.03.001

    Example:
        >>> from seqkeras.metrics import naive_error
        >>> naive_error([1.0, 5.0, 2.0, 7.0])
        4.0
        >>> naive_error([1.0, 5.0, 2.0, 7.0], period=2)
        1.5
    """
    series = np.asarray(series, "float64")
    return float(mean_absolute_error(series[period:], series[:-period]))


def _mean(numbers, axis):
    known = ~np.isnan(numbers)
    with np.errstate(invalid="ignore"):
        return np.where(known, numbers, 0).sum(axis) / np.float64(known.sum(axis))


def relative_error(values: Iterable[Any], targets: Iterable[Any]) -> float:
    """Return the sum of absolute errors over the sum of the targets' absolute values.

        error = sum |value - target| / sum |target|; the sum of errors if all targets are 0

    Args:
        values, targets: n numbers or arrays each; a value has the shape of its target.

    Returns:
        A number of at least 0.

    Raises:
        ValueError: if there is no value, not one target for each, or one of another shape.
    Example:
        >>> from seqkeras.metrics import relative_error
        >>> relative_error([9.0, 30.0], [10.0, 30.0])
        0.025
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
    return float(off / (size or 1.0))
