"""Correlation of numbers with their targets."""

from collections.abc import Iterable

import numpy as np

from seqkeras.metrics.pairs import pairs_of


def pearson_correlation(answers: Iterable[float], targets: Iterable[float]) -> float:
    """Return the linear correlation of numbers and targets.

        r = sum (x - mean x) (y - mean y) / sqrt(sum (x - mean x)^2 sum (y - mean y)^2)

    Args:
        answers, targets: n numbers each.

    Returns:
        A number from -1 to 1; 0 where all answers, or all targets, are equal.

    Raises:
        ValueError: if there is no answer, or not one target for each.

    Reference: Pearson 1895, https://doi.org/10.1098/rspl.1895.0041

    Example:
        >>> from seqkeras.metrics import pearson_correlation
        >>> pearson_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
        1.0
        >>> round(pearson_correlation([1.0, 2.0, 3.0], [1.0, 2.0, 30.0]), 3)
        0.881
    """
    return _pearson(*_numbers("pearson_correlation", answers, targets))


def spearman_correlation(answers: Iterable[float], targets: Iterable[float]) -> float:
    """Return the `pearson_correlation` of ranks; equal numbers share their mean rank.

    Args:
        answers, targets: n numbers each.

    Returns:
        A number from -1 to 1; 0 where all answers, or all targets, are equal.

    Raises:
        ValueError: if there is no answer, or not one target for each.

    Reference: Spearman 1904, https://doi.org/10.2307/1412159

    Example:
        >>> from seqkeras.metrics import spearman_correlation
        >>> spearman_correlation([1.0, 2.0, 3.0], [1.0, 2.0, 30.0])  # the order alone counts
        1.0
    """
    return _pearson(*map(_ranks, _numbers("spearman_correlation", answers, targets)))


def _numbers(metric, answers, targets):
    return np.array(pairs_of(metric, answers, targets), "float64").T


def _pearson(x, y):
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # squares of tiny numbers would be 0
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1, 1))


def _ranks(numbers):
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]
