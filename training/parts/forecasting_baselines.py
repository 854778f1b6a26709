"""Forecasts that a model must beat: by the last value, by the last season, and linear ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.series import WindowArrays

if TYPE_CHECKING:
    from seqkeras.data.series import Window

PERSISTENCE, SEASONAL = NAIVE = ("persistence", "seasonal naive")
AT_ONCE = 256  # windows
ROUNDING = 1e-13  # of a feature that never changes, of its size
MOST_FEATURES = 2500  # of the linear forecast: beyond, it reads the targets' past alone


def persistence(window: np.ndarray, horizon: int) -> np.ndarray:
    """Return (B, horizon, C), the last of (B, context, C) values."""
    return np.repeat(window[:, -1:], horizon, axis=1)


def seasonal_naive(windows: Sequence[Window], horizon: int, period: int) -> np.ndarray:
    """Return (B, horizon, C), the values one period before, again and again: f(t + h) = y(t + h - k
    p), with the least k for which that row is not to come; a missing value is the last one before
    it.

    Args:
        windows: list of B `seqkeras.data.series.Window`s; their series have the rows of a period
            before what follows.
    """
    steps = np.arange(horizon) % period - period
    rows, targets = windows[0].rows, windows[0].sizes[2]
    tables = {id(window.table): window.table for window in windows}
    values = {name: rows.filled(table)[:, :targets] for name, table in tables.items()}
    return np.stack([values[id(window.table)][window.past.stop + steps] for window in windows])


class Ridge:
    """Ridge regression of all steps on the past and on what is known, each feature scaled.

        W = argmin sum ||y - m_y - W^T z||^2 + ||W||^2,  z = (x - m_x) / s_x

    scikit-learn's Ridge with its default penalty behind its StandardScaler. Windows with a target
    that is missing are left out.

    Args:
        arrays: (window, known, target), each a `seqkeras.data.series.WindowArrays`, not scaled;
            known may be None.
        targets: C, how many of a step's features are targets.
    """

    def __init__(self, arrays: Any, targets: np.ndarray):
        window, known, target = arrays
        known_width = known.shape[1] * known.shape[2] if known else 0
        features = window.shape[1] * window.shape[2] + known_width
        self.width = targets if features > MOST_FEATURES else window.shape[2]
        self.horizon_and_targets = target.shape[1:]
        count, sums, products, level = 0, 0.0, 0.0, None
        for start in range(0, len(window), AT_ONCE):
            places = np.arange(start, min(start + AT_ONCE, len(window)))
            y = target[places].reshape(len(places), -1)
            real = ~np.isnan(y).any(axis=1)
            x = self._features(window[places], known[places] if known else None)
            both = np.concatenate([x, y], axis=1)[real]
            if level is None and len(both):  # whose square would take the digits of what varies
                level = both.mean(axis=0)
            both = both - level if len(both) else both
            count, sums, products = count + len(both), sums + both.sum(0), products + both.T @ both
        size, count = x.shape[1], max(count, 1)
        mean = sums / count
        covariance = products - count * np.outer(mean, mean)
        mean = mean + (0.0 if level is None else level)
        self.mean, self.intercept = mean[:size], mean[size:]
        self.deviation = np.sqrt(np.maximum(np.diag(covariance)[:size] / count, 0))
        self.deviation[self.deviation <= ROUNDING * np.abs(self.mean)] = 1.0
        gram = covariance[:size, :size] / np.outer(self.deviation, self.deviation)
        right = covariance[:size, size:] / self.deviation[:, None]
        self.weights = np.linalg.solve(gram + np.eye(size), right)

    def __call__(self, window: Any, known: Any) -> np.ndarray:
        """Return (B, horizon, C) forecasts of (B, context, features) and (B, horizon,
        covariates)."""
        z = (self._features(window, known) - self.mean) / self.deviation
        return (z @ self.weights + self.intercept).reshape(-1, *self.horizon_and_targets)

    def _features(self, window, known):
        parts = [window[..., : self.width]] + ([] if known is None else [known])
        flat = [part.reshape(len(part), -1) for part in parts]
        return np.concatenate(flat, axis=1)


def unscaled_arrays(windows: Sequence[Window]) -> tuple[Any, ...]:
    """Return what `Ridge` learns from: `WindowArrays` of window, known or None, and target."""
    known = WindowArrays(windows, "known", scaled=False) if windows[0].rows.num_known else None
    return (
        WindowArrays(windows, "window", scaled=False),
        known,
        WindowArrays(windows, "target", scaled=False),
    )


def baselines(
    windows: Sequence[Window], options: Any, ridge: Ridge | None = None
) -> dict[str, np.ndarray]:
    """Return a dictionary: name -> (windows, horizon, C) forecasts; the seasonal one where there is
    a season, and the series has a whole one before each window's targets.

    Args:
        windows: list of `seqkeras.data.series.Window`s.
        options: `ForecastingOptions`.
        ridge: a `Ridge`, for the linear forecast.
    """
    window, known, _ = unscaled_arrays(windows)
    forecasts = {PERSISTENCE: []}
    if 1 < options.period <= min(window.past.stop for window in windows):
        forecasts[SEASONAL] = [seasonal_naive(windows, options.horizon, options.period)]
    if ridge:
        forecasts["linear"] = []
    for start in range(0, len(windows), AT_ONCE):
        places = range(start, min(start + AT_ONCE, len(windows)))
        past = window[places]
        targets = past[..., : len(options.targets)]
        forecasts[PERSISTENCE].append(persistence(targets, options.horizon))
        if ridge:
            forecasts["linear"].append(ridge(past, known[places] if known else None))
    return {name: np.concatenate(parts) for name, parts in forecasts.items()}
