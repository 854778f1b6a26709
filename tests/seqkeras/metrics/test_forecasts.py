"""Errors of forecasts beside loops, with targets that are missing."""

import math

import numpy as np
import pytest

from seqkeras import metrics

SHAPE = 5, 3, 2


@pytest.fixture
def pairs():
    """Values, and targets of which some are missing."""
    generator = np.random.default_rng(0)
    values, targets = generator.normal(size=(2, *SHAPE)).astype("float32")
    targets[generator.random(SHAPE) < 0.3] = math.nan
    return values, targets


def mean(errors):
    known = [float(error) for error in errors if not math.isnan(error)]
    return sum(known) / len(known)


METRICS = {
    metrics.mean_absolute_error: lambda value, target: abs(target - value),
    metrics.root_mean_squared_error: lambda value, target: (target - value) ** 2,
}


@pytest.mark.parametrize("metric", METRICS)
def test_errors_are_the_mean_over_targets_that_are_known(metric, pairs):
    error = np.vectorize(METRICS[metric])(*map(np.float64, pairs))
    root = math.sqrt if metric is metrics.root_mean_squared_error else float
    assert metric(*pairs) == pytest.approx(root(mean(error.ravel())))
    by_step = [root(mean(error[:, step].ravel())) for step in range(SHAPE[1])]
    np.testing.assert_allclose(metric(*pairs, (0, 2)), by_step, rtol=1e-6)


def test_the_pinball_loss_is_the_mean_of_both_sides(pairs):
    for quantile in (0.1, 0.7):
        errors = [
            (quantile if target > value else quantile - 1) * (float(target) - float(value))
            for value, target in zip(*(each.ravel() for each in pairs))
        ]
        assert metrics.pinball_loss(*pairs, quantile) == pytest.approx(mean(errors))


def test_coverage_is_the_share_of_known_targets_in_the_band(pairs):
    low, targets = pairs
    high = low + 1
    inside = [
        float(below <= target <= above)
        for below, above, target in zip(low.ravel(), high.ravel(), targets.ravel())
        if not math.isnan(target)
    ]
    assert 0 < sum(inside) < len(inside)
    assert metrics.coverage(low, high, targets) == pytest.approx(sum(inside) / len(inside))


def test_the_naive_error_is_that_of_the_value_one_period_before():
    series = [3.0, 5.0, math.nan, 4.0, 4.5, 9.0]
    assert metrics.naive_error(series) == pytest.approx((2 + 0.5 + 4.5) / 3)
    assert metrics.naive_error(series, 2) == pytest.approx((1 + 5) / 2)


def test_where_no_target_is_known_there_is_no_error():
    assert math.isnan(metrics.mean_absolute_error([1.0], [math.nan]))
