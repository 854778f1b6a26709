"""The linear part of a forecaster: a season, and an average of simple linear forecasts.

Each target is forecast by itself, of the past S of its own values:

    e(t) = y(t) - W^T r(t)              what a regression on the season and on known values leaves
    last    e(h) = e(0) + V [e(t) - e(0)] + b      ridge regression from the last value
    level   e(h) = V e(t) + b                      ridge regression from the mean
    trend   e(h) = Holt's damped trend
    mean    e(h) = b

Ridge regressions read several numbers of lags, and a lag of distance l has the penalty a l. What
the forecasts of the validation folds, the last parts of the training rows, miss in the mean decides
the penalties, the season's waves, and the weights of the average: (smallest error / error)^10.

Reference: averages weighted by errors: Bates and Granger 1969, https://doi.org/10.1057/jors.1969.103;
damped trend: Gardner and McKenzie 1985, https://doi.org/10.1287/mnsc.31.10.1237; lags:
Zeng et al. 2023, https://arxiv.org/abs/2205.13504
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqkeras.metrics import naive_error
from seqkeras.models.linear_forecast import EPSILON, waves
from seqkeras.spreading import evenly_spread

PENALTIES = 10.0 ** np.arange(-4, 6)
NEARLY_ONE = 0.9  # of a level that goes on, the share in the forecast of the last step
POWER = 10  # of an error, in the weight of its forecast
FOLDS, FOLDED = 4, 0.4  # and the share of the training rows that they are
LEAST, MOST = 8, 6_000  # windows of a regression
LEAST_JUDGED, MOST_JUDGED = 24, 300  # windows of all folds, and of one
MOST_SMOOTHED = 2_000  # steps by which the smoothing of a trend is chosen
LEAST_OF_RANGE = 0.1  # of values that are read as logarithms
TINY = 1e-300  # beside an error, which may be zero
PIECES = 8  # of the trend that stands beside a season, each of 3 seasons at least
TRENDS = np.array(
    [
        *itertools.product(
            (0.05, 0.1, 0.2, 0.4, 0.7, 1.0), (0, 0.05, 0.15, 0.3, 0.6), (0.8, 0.9, 0.95, 0.98, 1.0)
        )
    ]
)  # smoothing of the level and of the slope, and damping


@dataclasses.dataclass(frozen=True)
class Past:
    """The training rows of one target of a series.

    Attributes:
        values: (rows,) float64, NaN where one is missing.
        filled: (rows,) float64, the last value in place of a missing one.
        known: (rows, covariates + 2 cycles), what is known of every row.
    """

    values: np.ndarray
    filled: np.ndarray
    known: np.ndarray


@dataclasses.dataclass(frozen=True)
class LinearPart:
    """Weights of `seqkeras.models.LinearForecast` for one target.

    Attributes:
        season: (regressors of the orders,).
        kernel: (S, H).
        bias: (H,).
        orders: waves of each cycle.
        error: mean absolute error of the folds, in units of the error of persistence of one step.
        errors: (N, H) targets less forecasts of the folds' windows, as the numbers are read.
        drifts: whether forecasts move with the level of the past, at all steps.
    """

    season: np.ndarray
    kernel: np.ndarray
    bias: np.ndarray
    orders: tuple[int, ...]
    error: float
    errors: np.ndarray
    drifts: bool

    def season_of(self, orders: Sequence[int], num_covariates: int) -> np.ndarray:
        """Return W of at least as many waves, with zeros for those that it has not."""
        weights, start = [self.season[:num_covariates]], num_covariates
        for order, most in zip(self.orders, orders):
            weights += [self.season[start : start + 2 * order], np.zeros(2 * (most - order))]
            start += 2 * order
        return np.concatenate(weights)

    def scaled(self, mean: float, deviation: float) -> LinearPart:
        """Return the weights that forecast scaled numbers, z = (y - mean) / deviation."""
        bias = self.bias - mean + mean * self.kernel.sum(axis=0)
        parts = {"season": self.season, "bias": bias, "errors": self.errors}
        return dataclasses.replace(self, **{name: part / deviation for name, part in parts.items()})


@dataclasses.dataclass(frozen=True)
class Linear:
    """How linear parts are found.

    Attributes:
        context, horizon: S and H.
        num_covariates: how many of what is known are covariates; sines and cosines follow.
        orders: the waves of each cycle, as many as there may be.
        longest: rows of the longest cycle; None without one.
        by_window: whether each window is brought to mean 0 and variance 1; there is no season
            then.
        log: whether values are read as log(1 + y).
    """

    context: int
    horizon: int
    num_covariates: int = 0
    orders: tuple[int, ...] = ()
    longest: float | None = None
    by_window: bool = False
    log: bool = False

    def fit(self, pasts: Sequence[Past]) -> LinearPart | None:
        """Return the best `LinearPart` of a target, None where the rows are too few to judge one.

        Args:
            pasts: the training rows of each series.
        """
        if self.log:
            pasts = [
                dataclasses.replace(
                    past, values=np.log1p(past.values), filled=np.log1p(past.filled)
                )
                for past in pasts
            ]
        parts = [part for orders in self._seasons() if (part := self._with(pasts, orders))]
        return min(parts, key=lambda part: part.error, default=None)

    def careful(self, pasts: Sequence[Past]) -> LinearPart:
        """Return the part of rows that are too few to judge one: the mean of the last value and of
        the damped trend.

        Args: see `fit`.
        """
        filled = max((past.filled for past in pasts), key=len)
        kernel = np.zeros((self.context, self.horizon))
        kernel[-1] = 1
        smoothing = _smoothing(filled[-MOST_SMOOTHED:])
        kernel = (kernel + _damped_trend(np.eye(self.context), *smoothing, self.horizon)) / 2
        places = np.arange(self.context, len(filled) - self.horizon + 1)
        errors = np.zeros((1, self.horizon))
        if len(places):
            windows = _rows(filled, places - self.context, self.context)
            errors = _rows(filled, places, self.horizon) - windows @ kernel
            errors = errors / _moments(windows)[1] if self.by_window else errors
        season, bias = np.zeros(self.num_covariates), np.zeros(self.horizon)
        return LinearPart(season, kernel, bias, (0,) * len(self.orders), np.inf, errors, True)

    def _seasons(self):
        """Return what the orders may be; None for no season and no covariates."""
        if self.by_window or not (self.num_covariates or any(self.orders)):
            return [None]
        halves = tuple((order + 1) // 2 for order in self.orders)
        return [None, *dict.fromkeys([halves, self.orders])]

    def _with(self, pasts, orders):
        folds = [fold for back in range(1, FOLDS + 1) if (fold := self._fold(pasts, orders, back))]
        if sum(len(fold.units) for fold in folds) < LEAST_JUDGED:
            return None
        names = set.intersection(*({*fold.forecasts} for fold in folds))
        errors = {name: np.mean([fold.error(name) for fold in folds]) for name in names}
        best = {}  # kind and number of lags -> the name with the best penalty
        for name in sorted(names):
            if name[:2] not in best or errors[name] < errors[best[name[:2]]]:
                best[name[:2]] = name
        least = max(min(errors.values()), TINY)
        weights = {name: (least / max(errors[name], TINY)) ** POWER for name in best.values()}
        total = sum(weights.values())
        weights = {name: weight / total for name, weight in weights.items()}
        season, left = self._left(pasts, orders, [len(past.values) for past in pasts])
        forecasts = self._forecasts(pasts, left, [len(past.values) for past in pasts])
        if not weights.keys() <= forecasts.keys():
            return None
        kernel, bias = _average(forecasts, weights)
        averages = [(fold, _average(fold.forecasts, weights)) for fold in folds]
        return LinearPart(
            season,
            kernel,
            bias,
            orders or (0,) * len(self.orders),
            float(np.mean([fold.error_of(*average) for fold, average in averages])),
            np.concatenate([fold.errors_of(*average) for fold, average in averages]),
            bool(kernel.sum(axis=0).min() > NEARLY_ONE),
        )

    def _fold(self, pasts, orders, back):
        """Return the `_Fold` so many from the end; None if it judges no window."""
        sizes = [max(1, int(len(past.values) * FOLDED / FOLDS)) for past in pasts]
        last = self.horizon - 1  # rows from which a whole horizon does not follow
        ends = [len(past.values) - last - size * back for past, size in zip(pasts, sizes)]
        season, left = self._left(pasts, orders, ends)
        forecasts = self._forecasts(pasts, left, ends)
        windows, seasons, targets, units = [], [], [], []
        most = max(1, MOST_JUDGED // len(pasts))
        for past, rest, end, size in zip(pasts, left, ends, sizes):
            places = np.arange(max(end, self.context), max(end + size, self.context))
            places = self._with_targets(past, places)
            places = places[evenly_spread(most, len(places))] if len(places) else places
            unit = naive_error(self._in_file(past.values[:end])) if len(places) else 0.0
            if not unit > 0:  # NaN of one row
                continue
            windows.append(_rows(rest, places - self.context, self.context))
            targets.append(_rows(past.values, places, self.horizon))
            seasons.append(_rows(past.filled - rest, places, self.horizon))
            units.append(np.full(len(places), unit))
        if not windows or not forecasts:
            return None
        return _Fold(self, forecasts, *map(np.concatenate, (windows, seasons, targets, units)))

    def _in_file(self, values):
        return np.expm1(values) if self.log else values

    def _with_targets(self, past, places):
        """Return those places from which no target is missing."""
        if not len(places):
            return places
        return places[~np.isnan(_rows(past.values, places, self.horizon)).any(axis=1)]

    def _left(self, pasts, orders, ends):
        """Return W, and what the season leaves of each series; W of the rows up to their ends."""
        count = self.num_covariates + 2 * sum(self.orders if orders is None else orders)
        if orders is None:
            count = self.num_covariates
            return np.zeros(count), [past.filled for past in pasts]
        regressors = [self._regressors(past.known, orders) for past in pasts]
        gram, right = np.zeros((count, count)), np.zeros(count)
        for past, values, end in zip(pasts, regressors, ends):
            real = ~np.isnan(past.values[:end])
            trend = self._trend(end)[real]
            both = np.concatenate([values[:end][real], past.values[:end][real, None]], axis=1)
            if len(both) <= trend.shape[1]:
                continue
            both = both - trend @ np.linalg.lstsq(trend, both, rcond=None)[0]
            gram += both[:, :-1].T @ both[:, :-1]
            right += both[:, :-1].T @ both[:, -1]
        season = np.linalg.lstsq(gram, right, rcond=1e-10)[0]
        return season, [past.filled - values @ season for past, values in zip(pasts, regressors)]

    def _trend(self, end):
        """Return (rows, pieces + 1) of a line that may bend, beside which a season is measured."""
        pieces = int(np.clip(end // (3 * self.longest), 1, PIECES)) if self.longest else 1
        share = np.arange(end)[:, None] / max(end, 1)
        bends = np.maximum(share - np.linspace(0, 1, pieces, endpoint=False), 0)
        return np.concatenate([np.ones((end, 1)), bends], axis=1)

    def _regressors(self, known, orders):
        parts = [known[:, : self.num_covariates]]
        for cycle, order in enumerate(orders):
            sine = self.num_covariates + 2 * cycle
            parts += waves(known[:, sine : sine + 1], known[:, sine + 1 : sine + 2], order)
        return np.concatenate(parts, axis=1)

    def _forecasts(self, pasts, left, ends):
        """Return a dictionary: (kind, lags, penalty) -> kernel (S, H) and bias (H,), learned of the
        rows before the ends."""
        forecasts = {}
        length, horizon = self.context, self.horizon
        most = max(1, MOST // len(pasts))
        for lags in sorted({max(length // part, min(3, length)) for part in (1, 2, 4, 8)}):
            reach = length if self.by_window else lags
            windows, targets = [], []
            for past, rest, end in zip(pasts, left, ends):
                places = self._with_targets(past, np.arange(reach, end - horizon + 1))
                if len(places):
                    places = places[evenly_spread(most, len(places))]
                    windows.append(_rows(rest, places - reach, reach))
                    targets.append(_rows(rest, places, horizon))
            if sum(map(len, windows)) < LEAST:
                continue
            x, y = np.concatenate(windows), np.concatenate(targets)
            if self.by_window:
                x, y = _normal(x, x), _normal(x, y)
            x, last = x[:, -lags:], x[:, -1:]
            distance = np.arange(lags, 0, -1.0)
            for penalty, (weights, bias) in _ridge(x[:, :-1] - last, y - last, distance[:-1]):
                kernel = np.zeros((length, horizon))
                kernel[length - lags : -1] = weights
                kernel[-1] = 1 - weights.sum(axis=0)
                forecasts["last", lags, penalty] = kernel, bias
            for penalty, (weights, bias) in _ridge(x, y, distance):
                kernel = np.zeros((length, horizon))
                kernel[length - lags :] = weights
                forecasts["level", lags, penalty] = kernel, bias
            forecasts["mean", 0, 0.0] = np.zeros((length, horizon)), y.mean(axis=0)
        longest, end = max(zip(left, ends), key=lambda pair: pair[1])
        if forecasts and length > 1:
            smoothing = _smoothing(longest[:end][-MOST_SMOOTHED:])
            kernel = _damped_trend(np.eye(length), *smoothing, horizon)
            forecasts["trend", 0, 0.0] = kernel, np.zeros(horizon)
        return forecasts


def may_be_log(values: np.ndarray) -> bool:
    """Return whether training values lie so far over 0 that later ones do too, as far as a range
    tells."""
    return bool(np.nanmin(values) > LEAST_OF_RANGE * np.ptp(values[~np.isnan(values)]))


@dataclasses.dataclass(frozen=True)
class _Fold:
    """Windows (N, S) of what the season leaves, the season (N, H) and the targets (N, H) of the
    steps to come, the unit (N,) of errors, and the forecasts that are judged by them."""

    linear: Linear
    forecasts: dict[Any, tuple[np.ndarray, np.ndarray]]
    windows: np.ndarray
    seasons: np.ndarray
    targets: np.ndarray
    units: np.ndarray

    def error(self, name):
        return self.error_of(*self.forecasts[name])

    def error_of(self, kernel, bias):
        """Return the mean absolute error, in units of the file's values."""
        values, targets = (
            self.linear._in_file(numbers) for numbers in (self._values(kernel, bias), self.targets)
        )
        return float(np.mean(abs(values - targets).mean(axis=1) / self.units))

    def errors_of(self, kernel, bias):
        """Return (N, H) targets less forecasts, as the numbers are read."""
        errors = self.targets - self._values(kernel, bias)
        return errors / _moments(self.windows)[1] if self.linear.by_window else errors

    def _values(self, kernel, bias):
        if not self.linear.by_window:
            return self.windows @ kernel + bias + self.seasons
        mean, deviation = _moments(self.windows)
        return (_normal(self.windows, self.windows) @ kernel + bias) * deviation + mean


def _rows(values, starts, length):
    """Return (starts, length) values behind each start."""
    return np.lib.stride_tricks.sliding_window_view(values, length)[starts]


def _moments(windows):
    deviation = np.sqrt(windows.var(axis=1, keepdims=True) + EPSILON)
    return windows.mean(axis=1, keepdims=True), deviation


def _normal(windows, values):
    """Return values by the mean and the deviation of the windows that they belong to."""
    mean, deviation = _moments(windows)
    return (values - mean) / deviation


def _average(forecasts, weights):
    """Return kernel and bias of the weighted average."""
    return tuple(
        sum(weight * forecasts[name][part] for name, weight in weights.items()) for part in (0, 1)
    )


def _ridge(x, y, factors):
    """Yield (penalty, (weights, bias)) of ridge regression, scikit-learn's `Ridge(penalty)` of
    features that are divided by their deviation and the square root of their factors.

        V = argmin sum ||y - m_y - V^T z||^2 + a ||V||^2,  z = (x - m_x) / (s_x sqrt(factor))
    """
    if not x.shape[1]:
        return
    mean, centre = x.mean(axis=0), y.mean(axis=0)
    deviation = x.std(axis=0)
    deviation[deviation <= 1e-12 * (1 + abs(mean))] = np.inf
    scale = deviation * np.sqrt(factors)
    z = (x - mean) / scale
    values, vectors = np.linalg.eigh(z.T @ z)
    turned = vectors.T @ (z.T @ (y - centre))
    for penalty in PENALTIES:
        weights = vectors @ (turned / (np.maximum(values, 0) + penalty)[:, None]) / scale[:, None]
        yield float(penalty), (weights, centre - mean @ weights)


def _smoothing(values):
    """Return the smoothing of level and slope and the damping whose forecasts of one step have the
    least squares."""
    level_share, slope_share, damping = TRENDS.T
    level = np.full(len(TRENDS), values[0])
    slope = np.full(len(TRENDS), np.diff(values[:10]).mean() if len(values) > 1 else 0.0)
    squares = np.zeros(len(TRENDS))
    for step, value in enumerate(values[1:]):
        expected = level + damping * slope
        error = value - expected
        level = expected + level_share * error
        slope = damping * slope + level_share * slope_share * error
        squares += error**2 * (step >= 10 or len(values) < 20)
    return TRENDS[squares.argmin()]


def _damped_trend(windows, level_share, slope_share, damping, horizon):
    """Return (N, H) forecasts of windows (N, S) by Holt's damped trend.

    l(t) = l(t-1) + d u(t-1) + a e(t)       e(t) = y(t) - l(t-1) - d u(t-1)
    u(t) = d u(t-1) + a b e(t)              y(h) = l + (d + d^2 + … + d^h) u
    """
    first = min(3, windows.shape[1] - 1)
    level, slope = windows[:, 0], (windows[:, first] - windows[:, 0]) / first
    for values in windows.T[1:]:
        expected = level + damping * slope
        error = values - expected
        level = expected + level_share * error
        slope = damping * slope + level_share * slope_share * error
    return level[:, None] + slope[:, None] * np.cumsum(damping ** np.arange(1, horizon + 1))
