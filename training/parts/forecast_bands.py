"""Bands that hold the share of what comes that their quantiles name.

After training, the distances between the quantiles of a target are multiplied by factors, chosen on
the held out windows of all steps:

    s = max((y_low - y) / d_low, (y - y_high) / d_high)      beyond the band within, in distances d
    f = quantile of s at (q_high - q_low) (1 + 1 / n)        the median stays

Windows that overlap tell less than others: n is the square root of their number times the number B
of horizons that the held out rows hold. Few rows do not show that a band is too wide: a factor
under 1 is f^(B / (B + 5)). What is told is cross-fitted: the windows of a fifth of the time have
the factors of windows that share no row to come with them.

Reference: Romano et al. 2019, https://arxiv.org/abs/1905.03222 (with summands)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from keras import ops

from seqkeras.metrics import coverage, pinball_loss
from seqkeras.models import BandWidths
from seqkeras.models.band_widths import centre_of
from seqkeras.terminal import one_line
from seqkeras.training.wording import counted

FOLDS = 5
CAREFUL = 5  # horizons beside which those of the held out rows count, where a band narrows
MOST = 20.0  # a factor, or one over it
TINY = 1e-12  # a distance between quantiles, in deviations


class Held(NamedTuple):
    """Forecasts of held out windows, in the numbers of the model.

    Attributes:
        values: (n, H, C, Q) quantiles.
        targets: (n, H, C), NaN where one is missing.
        starts: (n,) the first row to come.
        series: (n,) the number of the series.
    """

    values: np.ndarray
    targets: np.ndarray
    starts: np.ndarray
    series: np.ndarray

    def part(self, chosen: np.ndarray) -> Held:
        """Return the windows that are chosen, (n,) booleans."""
        return Held(*(array[chosen] for array in self))

    def horizons(self) -> float:
        """Return how many horizons the rows to come hold."""
        horizon = self.targets.shape[1]
        firsts = {*zip(self.series.tolist(), self.starts.tolist())}
        rows = {(series, start + step) for series, start in firsts for step in range(horizon)}
        return len(rows) / horizon


def calibrated_bands(quantiles: Sequence[float], held: Held) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the factors (C, Q - 1) of `seqkeras.models.BandWidths`, and what they bring, content
    of scores.json.

    Args:
        quantiles: Q of them, in order.
        held: what the model forecasts of held out windows.

    Returns:
        "windows"; "expected", the share that the band from the lowest to the highest quantile shall
        hold; "before" and "after", cross-fitted, the share that it holds, its mean width in
        deviations and the pinball loss; "reliability" of both, for each quantile the quantile and
        the share under it. No "after" where each window shares rows with too many others.
    """
    versions = {"before": held.values, "after": _cross_fitted(quantiles, held)}
    versions = {name: values for name, values in versions.items() if values is not None}
    told = {
        "windows": len(held.targets),
        "expected": quantiles[-1] - quantiles[0],
        **{name: _told(quantiles, values, held.targets) for name, values in versions.items()},
        "reliability": {
            name: _reliability(quantiles, values, held.targets) for name, values in versions.items()
        },
    }
    return _factors(quantiles, held, held), told


def _cross_fitted(quantiles, held):
    """Return the quantiles of each window by the factors of windows of other times; None where a
    fold has no such windows."""
    values, horizon = held.values.copy(), held.targets.shape[1]
    _, ranks = np.unique(held.starts, return_inverse=True)
    folds = FOLDS * ranks // (ranks.max() + 1)
    for fold in np.unique(folds):
        chosen = folds == fold
        first, last = held.starts[chosen].min(), held.starts[chosen].max()
        apart = (held.starts + horizon <= first) | (held.starts >= last + horizon)
        if not apart.any():
            return None
        layer = BandWidths(quantiles, values.shape[2])
        layer.build((None, *values.shape[1:]))
        layer.factors.assign(_factors(quantiles, held.part(apart), held))
        values[chosen] = ops.convert_to_numpy(layer(held.values[chosen]))
    return values


def _factors(quantiles, part, held):
    """Return the factors of a part of the windows, by the counts of all."""
    horizons = held.horizons()
    count, power = math.sqrt(len(held.targets) * horizons), horizons / (horizons + CAREFUL)
    return np.stack(
        [
            _of_target(quantiles, part.values[:, :, at], part.targets[:, :, at], count, power)
            for at in range(held.targets.shape[2])
        ]
    )


def _of_target(quantiles, values, targets, count, power):
    """Return (Q - 1,) factors, of (n, H, Q) values; the bands within first."""
    factors, centre = np.ones(len(quantiles) - 1), centre_of(quantiles)
    middle = values[..., centre].mean(axis=-1)
    before, after = {-1: middle, 1: middle}, {-1: middle, 1: middle}  # of the band within, by side
    for band in _bands(quantiles, centre):
        sides = {1 if index >= centre[-1] else -1: index for index in band}
        distances = {side: side * (values[..., at] - before[side]) for side, at in sides.items()}
        beyond = [
            side * (targets - after[side]) / np.maximum(distance, TINY)
            for side, distance in distances.items()
        ]
        beyond = np.max(beyond, axis=0)
        outside = sum(
            1 - quantiles[at] if side > 0 else quantiles[at] for side, at in sides.items()
        )
        factor = _factor(beyond[~np.isnan(beyond)], (1 - outside) * (1 + 1 / count), power)
        for side, at in sides.items():
            factors[at - (side > 0)] = factor
            before[side] = values[..., at]
            after[side] = after[side] + side * factor * distances[side]
    return factors


def _bands(quantiles, centre):
    """Return lists of indices: two quantiles that lie equally far from 1/2, or one; from within."""
    places = range(len(quantiles)) if len(centre) > 1 else {*range(len(quantiles))} - {*centre}

    def distance(index):
        return round(abs(quantiles[index] - 0.5), 9)

    return [[*band] for _, band in itertools.groupby(sorted(places, key=distance), key=distance)]


def _factor(beyond, level, power):
    if not beyond.size:
        return 1.0
    factor = np.clip(np.quantile(beyond, min(level, 1.0)), 1 / MOST, MOST)
    return float(factor if factor > 1 else factor**power)


def _told(quantiles, values, targets):
    lowest, highest = values[..., 0], values[..., -1]
    losses = [pinball_loss(values[..., at], targets, q) for at, q in enumerate(quantiles)]
    return {
        "coverage": float(coverage(lowest, highest, targets)),
        "width": float(np.mean(highest - lowest)),
        "pinball_loss": float(np.mean(losses)),
    }


def _reliability(quantiles, values, targets):
    known = ~np.isnan(targets)
    return [
        [quantile, float(np.mean(targets[known] <= values[..., index][known]))]
        for index, quantile in enumerate(quantiles)
    ]


def in_words(calibration: Mapping[str, Any]) -> str:
    """Return what the factors bring, for a line of the terminal."""
    before, after = calibration["before"], calibration.get("after")
    factors = "; ".join(
        f"{one_line(target)} {', '.join(f'{factor:.2f}' for factor in factors)}"
        for target, factors in calibration["factors"].items()
    )
    windows = counted(calibration["windows"], "windows", "window")
    after = f"{after['coverage']:.1%} after, cross-fitted" if after else "too few to tell it after"
    return (
        f"distances between quantiles times {factors}: the band of {calibration['expected']:.0%} "
        f"holds {before['coverage']:.1%} before, {after}; {windows}"
    )


def draw_bands(calibration: Mapping[str, Any], path: Path | str) -> None:
    """Draw which share lies under each quantile, before and after, into a PNG."""
    from seqkeras.analysis.figure_style import write_png

    write_png(lambda: _figure(calibration), path)


def _figure(calibration):
    from seqkeras.analysis.figure_style import QUIET, STYLES, frame, new_figure

    figure = new_figure(4.4, 3.8)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8)
    for (name, rows), style in zip(calibration["reliability"].items(), STYLES):
        axes.plot(*np.array(rows).T, label=name, markersize=4, **style)
    frame(axes, "reliability", "quantile", "share of what came under it")
    return figure
