"""Forecasts that a model must beat: by the last value, the last season, harmonics of the calendar,
ridge regression on lags and harmonics, and exponential smoothing."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.series import WindowArrays
from seqkeras.metrics import naive_error
from seqkeras.spreading import evenly_spread
from seqkeras.training.baselines import answered, sampled
from seqkeras.training.console import console
from seqkeras.training.parts.forecasting_defaults import LENGTHS
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.data.series import Series, Window

PERSISTENCE, SEASONAL = NAIVE = ("persistence", "seasonal naive")
CLIMATOLOGY, RIDGE, SMOOTHING = "climatology", "ridge", "exponential smoothing"
CYCLES = tuple(zip(LENGTHS.values(), (4, 3, 2)))  # seconds, harmonics at most
AT_ONCE = 256  # windows
ROUNDING = 1e-13  # of a feature that never changes, of its size
ALPHAS = 10.0 ** np.arange(-2, 7)  # penalties of ridge regression
CHOSEN_ON = 0.2  # share of the training windows, the last ones, on which the penalty is chosen
MOST_FEATURES = 1500  # of ridge regression: beyond, it reads the targets' past alone
MOST_NUMBERS = 2e7  # of its windows' features
MOST_SEASON = 400  # steps of a season of exponential smoothing
MOST_SMOOTHED = 20_000  # rows of a series by which it is fitted, the last ones of training
MOST_FITTED = 30  # series by which it is fitted; others have the season of most and its median
STARTS = ((0.9, 0.01, 0.05, 0.9), (0.3, 0.01, 0.1, 0.95))  # level, trend, season, damping


def persistence(window: np.ndarray, horizon: int) -> np.ndarray:
    """Return (B, horizon, C), the last of (B, context, C) values."""
    return np.repeat(window[:, -1:], horizon, axis=1)


def seasonal_naive(windows: Sequence[Window], horizon: int, period: int) -> np.ndarray:
    """Return (B, horizon, C), the values one period before, again and again: f(t + h) = y(t + h - k
    p), with the least k for which that row is not to come; a missing value is the last one before
    it. A window that has fewer rows of its series before it falls back to `persistence`.

    Args:
        windows: list of B `seqkeras.data.series.Window`s.
    """
    last, steps = np.full(horizon, -1), np.arange(horizon) % period - period
    tables = {part.key: part.filled for part in _parts(windows)}
    values = []
    for window in windows:
        origin = window.past.stop
        values.append(tables[id(window.table)][origin + (steps if period <= origin else last)])
    return np.stack(values)


def forecasts(
    windows: Sequence[Window], options: Any, train: Sequence[Window] = ()
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return name -> (B, horizon, C) forecasts, and name -> the sample that a method learns on.

    The naive ones learn nothing; the others learn on what is before the first window's targets.

    Args:
        windows: list of B `seqkeras.data.series.Window`s.
        options: `ForecastingOptions`.
        train: windows of training; none, and there are naive forecasts alone.
    """
    calendar = Calendar.of(windows, options.period)
    past = WindowArrays(windows, "window", scaled=False)
    targets = windows[0].sizes[2]
    last = [
        past[range(start, min(start + AT_ONCE, len(windows)))][:, -1:, :targets]
        for start in range(0, len(windows), AT_ONCE)
    ]
    by_method = {PERSISTENCE: persistence(np.concatenate(last), options.horizon)}
    learned_on: dict[str, str] = {}
    if season := calendar.best_season(options.horizon):
        by_method[SEASONAL] = seasonal_naive(windows, options.horizon, season)
    else:
        console.print(f"  no {SEASONAL} forecast: {calendar.why_no_season(options.period)}")
    if not train:
        return by_method, learned_on
    kept, of_ridge = ridge_sample(train, calendar)
    samples = {RIDGE: of_ridge, SMOOTHING: smoothing_sample(calendar, targets)}
    methods: dict[str, Callable[[], np.ndarray]] = {
        CLIMATOLOGY: lambda: climatology(windows, calendar),
        RIDGE: lambda: Ridge(kept, calendar)(windows),
        SMOOTHING: lambda: smoothing(windows, calendar),
    }
    if not calendar.cycles:
        del methods[CLIMATOLOGY]
    for name, method in methods.items():
        if (values := answered(name, method)) is not None:
            by_method[name] = values
            learned_on |= {name: samples[name]} if samples.get(name) else {}
    return by_method, learned_on


@dataclasses.dataclass(frozen=True, eq=False)
class _Part:
    """A series, its targets without gaps, and what may be learned of it: rows before `end`."""

    series: Series
    key: int
    values: np.ndarray  # (rows, C), NaN where one is missing
    filled: np.ndarray
    end: int
    places: list[int]  # of its windows
    origins: np.ndarray  # rows at which their targets begin


def _parts(windows: Sequence[Window]) -> list[_Part]:
    """Return the `_Part`s of the series of windows, whose `end` is before all of their targets."""
    places: dict[int, list[int]] = {}
    for index, window in enumerate(windows):
        places.setdefault(id(window.table), []).append(index)
    parts = []
    for key, of_series in places.items():
        window = windows[of_series[0]]
        targets = window.sizes[2]
        origins = np.array([windows[index].past.stop for index in of_series])
        filled = window.rows.filled(window.table)[:, :targets]
        values = window.table[:, :targets]
        parts.append(
            _Part(window.series, key, values, filled, int(origins.min()), of_series, origins)
        )
    return parts


@dataclasses.dataclass(frozen=True)
class Calendar:
    """Cycles of the steps of series: day, week and year where rows have times, else a period.

    Attributes:
        parts: the series.
        cycles: (length, harmonics) of each, in seconds, or in rows without times.
        seasons: steps of the seasons that there may be, the shortest first.
    """

    parts: list[Any]
    cycles: tuple
    seasons: tuple

    @classmethod
    def of(cls, windows: Sequence[Window], period: int | None) -> Calendar:
        """Return the calendar of windows.

        Args:
            windows: list of `seqkeras.data.series.Window`s.
            period: steps of the season, 1 for none; None: the time between rows tells it.
        """
        parts = _parts(windows)
        longest = max(part.end for part in parts)
        cycles = [(float(period), max(harmonics for _, harmonics in CYCLES))] if period else []
        step = 1.0
        if parts[0].series.times is not None:
            first = parts[0].series.times
            step = float(np.ptp(first) / np.timedelta64(1, "s")) / max(len(first) - 1, 1)
            cycles = [*CYCLES]
        cycles = [
            (length, min(harmonics, round(length / step) // 2))
            for length, harmonics in cycles
            if 2 <= round(length / step) <= longest
        ]
        seasons = (period,) if period else tuple(round(length / step) for length, _ in cycles)
        return cls(parts, tuple(cycles), tuple(s for s in seasons if s > 1))

    def harmonics(self, series: Series) -> np.ndarray:
        """Return (rows, 2 k) waves: cos and sin of 2 pi k t / length."""
        times = np.arange(len(series), dtype="float64")
        if series.times is not None:
            times = (series.times - np.datetime64(0, "D")) / np.timedelta64(1, "s")
        waves = [np.zeros((len(times), 0))]
        for length, count in self.cycles:
            angles = 2 * np.pi * np.outer(times / length, np.arange(1, count + 1))
            waves += [np.cos(angles), np.sin(angles)]
        return np.concatenate(waves, axis=1)

    def best_season(self, horizon: int) -> int | None:
        """Return the season whose repetition has the least error before the first window's targets;
        None where no series is as long as one.

        A series that is too short for a season counts with the error of persistence, to which its
        forecast falls back; one that is too short for any error does not count.
        """
        longest = max(part.end for part in self.parts)
        fitting = [season for season in self.seasons if season <= longest]
        if len(fitting) < 2:
            return next(iter(fitting), None)
        errors = np.array(
            [[self._error(part, season, horizon) for season in fitting] for part in self.parts]
        )
        is_known = ~np.isnan(errors).any(axis=1)
        return fitting[int(errors[is_known].sum(axis=0).argmin())]

    def _error(self, part, season, horizon):
        lags = np.arange(1, horizon + 1)
        lags = season * -(-lags // season) if season <= part.end else lags
        total = 0.0
        for column in part.values[: part.end].T:
            scale = naive_error(column) or 1.0
            errors = {lag: naive_error(column, lag) for lag in {*lags.tolist()}}
            total += np.mean([errors[lag] for lag in lags.tolist()]) / scale
        return total

    def why_no_season(self, period: int | None) -> str:
        """Return why there is no seasonal naive forecast."""
        if self.seasons:
            rows = max(part.end for part in self.parts)
            return (
                f"a season of {min(self.seasons):,} steps is more than the {rows:,} rows before "
                "the first window's targets"
            )
        return "--period 1 says so" if period else "rows tell no season; name one by --period"


def climatology(windows: Sequence[Window], calendar: Calendar) -> np.ndarray:
    """Return (B, horizon, C), a trend and harmonics of the calendar by least squares.

    y(t) = a + b t + sum over cycles and k of c cos(2 pi k t / length) + d sin(2 pi k t / length)
    """
    horizon, targets = windows[0].sizes[1:]
    values = np.empty((len(windows), horizon, targets))
    for part in calendar.parts:
        rows = np.arange(len(part.values))
        trend = np.stack([np.ones(len(rows)), rows / part.end], axis=1)
        design = np.concatenate([trend, calendar.harmonics(part.series)], axis=1)
        for index, column in enumerate(part.values.T):
            known = ~np.isnan(column) & (rows < part.end)
            middle, spread = column[known].mean(), column[known].std() or 1.0
            weights = np.linalg.lstsq(design[known], (column[known] - middle) / spread)[0]
            line = middle + spread * (design @ weights)
            values[part.places, :, index] = line[part.origins[:, None] + np.arange(horizon)]
    return values


class Ridge:
    """Ridge regression of the steps to come on lags, harmonics and what is known, the penalty
    chosen on the last fifth of the training windows.

        W = argmin sum ||(y - last - m) - W^T z||^2 + alpha ||W||^2

    z are the features, each with mean 0 and deviation 1: the last value, the past less the last
    value, what is known of the future, and the calendar's harmonics where it begins. y, last and
    the past are measured in deviations of their series from its mean before the end of training, so
    that series of several scales share W. Windows with a target that is missing are left out.

    Args:
        windows: windows of training.
        calendar: the `Calendar`.
    """

    def __init__(self, windows: Sequence[Window], calendar: Calendar):
        self.calendar, self.sizes = calendar, windows[0].sizes
        windows = [window for window in windows if not np.isnan(window.target).any()]
        horizon = self.sizes[1]
        self.scales = {part.key: _scale(part.filled[: part.end]) for part in calendar.parts} | {
            part.key: _scale(part.filled[: part.origins.max() + horizon])
            for part in _parts(windows)
        }
        x, last, scale, mean = self._features(windows)
        target = WindowArrays(windows, "target", scaled=False)[range(len(windows))]
        y = ((target - mean) / scale - last[:, None]).reshape(len(windows), -1)
        starts = np.array([window.start for window in windows])
        first = np.sort(starts)[-max(1, round(CHOSEN_ON * len(starts)))]
        held, before = starts >= first, starts <= first - self.sizes[1]
        self.alpha = 1.0
        if before.sum() > 1:
            spread = y[before].std(axis=0)
            spread[spread == 0] = 1.0
            fits = _Fits(x[before], y[before])
            errors = [np.mean(abs(fits(alpha)(x[held]) - y[held]) / spread) for alpha in ALPHAS]
            self.alpha = float(ALPHAS[int(np.argmin(errors))])
        self.forecast = _Fits(x, y)(self.alpha)

    def __call__(self, windows: Sequence[Window]) -> np.ndarray:
        """Return (B, horizon, C) forecasts."""
        values = []
        for start in range(0, len(windows), AT_ONCE):
            x, last, scale, mean = self._features(windows[start : start + AT_ONCE])
            steps = self.forecast(x).reshape(len(x), *self.sizes[1:])
            values.append((steps + last[:, None]) * scale + mean)
        return np.concatenate(values)

    def _features(self, windows):
        """Return (B, features); (B, C) last values, scaled; and (B, 1, C) scales and means."""
        places, targets = range(len(windows)), self.sizes[2]
        past = WindowArrays(windows, "window", scaled=False)[places]
        if past[0].size > MOST_FEATURES:
            past = past[..., :targets]
        means, scales = zip(*(self.scales[id(window.table)] for window in windows))
        mean, scale = np.stack(means)[:, None], np.stack(scales)[:, None]
        past = past.copy()
        past[..., :targets] = (past[..., :targets] - mean) / scale
        last = past[:, -1, :targets].copy()
        past[..., :targets] -= last[:, None]
        waves = [self._waves(window.series)[window.future.start] for window in windows]
        parts = [last, past.reshape(len(windows), -1), np.stack(waves)]
        if windows[0].rows.num_known:
            known = WindowArrays(windows, "known", scaled=False)[places]
            parts.append(known.reshape(len(windows), -1))
        return np.concatenate(parts, axis=1), last, scale, mean

    @functools.cached_property
    def _waves(self):
        """A function: series -> its harmonics, computed once."""
        return functools.cache(self.calendar.harmonics)


def _scale(rows):
    """Return the mean and the deviation of each column; 1 for the deviation of a constant."""
    deviation = rows.std(axis=0)
    return rows.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


class _Fits:
    """Ridge regressions of every penalty, from one decomposition of the features."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.mean, self.middle = x.mean(axis=0), y.mean(axis=0)
        centred = x - self.mean
        self.deviation = np.sqrt(np.mean(centred**2, axis=0))
        self.deviation[self.deviation <= ROUNDING * np.abs(self.mean)] = 1.0
        z = centred / self.deviation
        self.values, self.vectors = np.linalg.eigh(z.T @ z)
        self.right = self.vectors.T @ (z.T @ (y - self.middle))

    def __call__(self, alpha: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function: features -> targets."""
        scaled = self.right / (np.maximum(self.values, 0) + alpha)[:, None]
        weights = (self.vectors @ scaled) / self.deviation[:, None]
        return lambda x: (x - self.mean) @ weights + self.middle


def ridge_sample(train: Sequence[Window], calendar: Calendar) -> tuple[list[Window], str]:
    """Return the windows that ridge regression learns on, and in words which these are."""
    context, _, targets = train[0].sizes
    width = context * train[0].rows.num_features
    width = context * targets if width > MOST_FEATURES else width
    return sampled(train, MOST_NUMBERS / width, "windows")


def smoothing_sample(calendar: Calendar, targets: int) -> str:
    """Return in words what `smoothing` is fitted on; "" for all."""
    count, words = len(calendar.parts) * targets, []
    if count > MOST_FITTED:
        noun = "series" if targets == 1 else "targets of series"
        words.append(f"{MOST_FITTED} of {counted(count, noun)}")
    if max(part.end for part in calendar.parts) > MOST_SMOOTHED:
        words.append(f"the last {MOST_SMOOTHED:,} rows")
    return ", ".join(words)


def smoothing(windows: Sequence[Window], calendar: Calendar) -> np.ndarray:
    """Return (B, horizon, C), exponential smoothing with a damped trend and a season, fitted on the
    training part and updated by the rows before each window's targets.

    f(t + h) = l(t) + (phi + ... + phi^h) b(t) + s(t + h - m k), with the least k for which that row
    is not to come

    Reference: Hyndman, Koehler, Ord and Snyder 2008, section 2.5 (ETS(A, Ad, A))
    """
    horizon, targets = windows[0].sizes[1:]
    values = np.empty((len(windows), horizon, targets))
    jobs = [(part, index) for part in calendar.parts for index in range(targets)]
    seasons = [0, *(season for season in calendar.seasons if season <= MOST_SEASON)]
    fits: dict[int, list[np.ndarray]] = {}  # of a season: parameters of the series that have it
    learned = {}
    for number in evenly_spread(MOST_FITTED, len(jobs)):
        part, index = jobs[number]
        season = best_smoothing(part.filled[: part.end, index], seasons, horizon)
        learned[number] = season, Smoother(part.filled[:, index], part.end, season).fitted()
        fits.setdefault(season, []).append(learned[number][1])
    most = max(fits, key=lambda season: len(fits[season]))
    for number, (part, index) in enumerate(jobs):
        season, parameters = learned.get(number) or (most, np.median(fits[most], axis=0))
        smoother = Smoother(part.filled[:, index], part.end, season)
        values[part.places, :, index] = smoother.forecasts(parameters, part.origins, horizon)
    return values


def best_smoothing(train: np.ndarray, seasons: Sequence[int], horizon: int) -> int:
    """Return the season, 0 for none, with the least error of forecasts in the last fifth of
    (rows,) training numbers; the first one where that is too short."""
    end = len(train) - round(CHOSEN_ON * len(train))
    origins = np.arange(end, len(train) - horizon + 1)
    if not len(origins) or len(seasons) < 2:
        return seasons[0]
    targets = train[origins[:, None] + np.arange(horizon)]

    def error(season):
        smoother = Smoother(train, end, season)
        values = smoother.forecasts(smoother.fitted(), origins, horizon)
        return np.abs(values - targets).mean()

    return min(seasons, key=error)


class Smoother:
    """Exponential smoothing of one series by statsmodels; a series of fewer than 10 rows, or of
    equal rows, is forecast by its last value.

    Args:
        values: (rows,) numbers.
        end: rows before it are of training.
        season: steps of the season, 0 for none; training rows must show two.
    """

    def __init__(self, values: np.ndarray, end: int, season: int):
        self.begin = max(0, end - MOST_SMOOTHED)
        train = values[self.begin : end]
        self.middle, self.spread = train.mean(), train.std()
        self.values, self.count = values, len(train)
        self.season = season if len(train) >= max(2 * season, 10 + season) else 0
        self.is_plain = len(train) < 10 or self.spread <= ROUNDING * abs(self.middle)

    def fitted(self) -> np.ndarray:
        """Return level, trend, season and damping of the most likely of several searches."""
        if self.is_plain:
            return np.array(STARTS[0])
        model = self._model(self._scaled()[: self.count])
        fits = [model.fit(start_params=self._used(start), disp=False) for start in STARTS]
        level, trend, *season, damping = max(fits, key=lambda fit: fit.llf).params
        return np.array([level, trend, *(season or [0.0]), damping])

    def forecasts(self, parameters: np.ndarray, origins: np.ndarray, horizon: int) -> np.ndarray:
        """Return (B, horizon), the steps from the row of each origin on."""
        if self.is_plain:
            return np.repeat(self.values[origins - 1, None], horizon, axis=1)
        scaled, used = self._scaled(), self._used(parameters)
        first = self._model(scaled[: self.count]).smooth(used)
        known = {"initial_level": first.initial_level, "initial_trend": first.initial_trend}
        if self.season:
            known["initial_seasonal"] = first.initial_seasonal
        states = self._model(scaled, initialization_method="known", **known).smooth(used)
        rows, steps = origins - self.begin - 1, np.arange(1, horizon + 1)
        damping = np.cumsum(parameters[-1] ** steps)
        values = states.level[rows, None] + damping * states.slope[rows, None]
        if self.season:
            values += states.season[rows[:, None] - self.season + 1 + (steps - 1) % self.season]
        return self.middle + self.spread * values

    def _used(self, parameters):
        """Return parameters without the season's, where there is none."""
        return np.asarray(parameters)[[0, 1, 2, 3] if self.season else [0, 1, 3]]

    def _scaled(self):
        return (self.values[self.begin :] - self.middle) / self.spread

    def _model(self, values, initialization_method="heuristic", **known):
        from statsmodels.tsa.exponential_smoothing.ets import ETSModel

        seasonal = {"seasonal": "add", "seasonal_periods": self.season} if self.season else {}
        return ETSModel(
            values,
            error="add",
            trend="add",
            damped_trend=True,
            initialization_method=initialization_method,
            **seasonal,
            **known,
        )
