"""Scores of forecasts, beside scores of naive forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from seqkeras.metrics import (
    coverage,
    mean_absolute_error,
    pinball_loss,
    root_mean_squared_error,
)
from seqkeras.terminal import one_line
from seqkeras.training.baselines import ERROR, Measure, compared, ratio
from seqkeras.training.parts.baselines.forecasts import NAIVE
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.serving.results import Forecasting

MOST_STEPS = 12  # in a table


def forecast_scores(
    answers: Sequence[Forecasting],
    targets: np.ndarray,
    baselines: Mapping[str, np.ndarray],
    names: Sequence[str],
    scales: np.ndarray,
) -> dict[str, Any]:
    """Return errors of the model and of other forecasts: of all steps and targets, by target, by
    step.

    Args:
        answers: n `seqkeras.serving.results.Forecasting`s.
        targets: (n, horizon, C), NaN where one is missing.
        baselines: name -> (n, horizon, C).
        names: names of the C targets.
        scales: (n, C), what MASE is measured by; 0 or NaN where it is unknown.

    Returns:
        A dictionary that JSON can hold.
    """
    forecasts = {"model": np.stack([answer.values for answer in answers])} | baselines
    scores: dict[str, Any] = {
        "windows": len(targets),
        "forecasts": {},
        "by_target": {},
        "by_step": {},
    }
    for method, values in forecasts.items():
        scores["forecasts"][method] = forecast_errors(values, targets, scales)
        scores["by_step"][method] = mean_absolute_error(values, targets, (0, 2)).tolist()
        for index, name in enumerate(names):
            part = values[..., [index]], targets[..., [index]], scales[:, [index]]
            scores["by_target"].setdefault(name, {})[method] = forecast_errors(*part)
    naive = [errors["mae"] for method, errors in scores["forecasts"].items() if method in NAIVE]
    scores |= scores["forecasts"]["model"]
    if naive and min(naive) > 0:  # a naive forecast may be right to the last bit
        scores["better_than_naive"] = 1 - scores["mae"] / min(naive)
    if quantiles := tuple(answers[0].quantiles):
        bands = [np.stack([answer.quantiles[q] for answer in answers]) for q in quantiles]
        scores["pinball"] = {
            str(q): float(pinball_loss(values, targets, q)) for q, values in zip(quantiles, bands)
        }
    if len(quantiles) > 1:
        band = bands[0], bands[-1]
        scores["coverage"] = {
            "expected": quantiles[-1] - quantiles[0],
            "found": float(coverage(*band, targets)),
            "by_step": coverage(*band, targets, (0, 2)).tolist(),
        }
    return scores


def beside_baselines(
    scores: Mapping[str, Any],
    forecasts: Mapping[str, np.ndarray],
    targets: np.ndarray,
    scales: np.ndarray,
    blocks: np.ndarray,
    seed: int,
    learned_on: Mapping[str, str],
) -> dict[str, Any]:
    """Return what scores.json says of the model beside the best of other forecasts, by MASE, or by
    MAE where there is none; the interval is of blocks of windows.

    Args:
        scores: from `forecast_scores`.
        forecasts: name -> (n, horizon, C), the model's first.
        targets, scales: see `forecast_scores`.
        blocks: (n,) the number of each window's block.
        seed: of the bootstrap.
        learned_on: name -> the sample that a method learns on, where it is one.
    """
    name = "mase" if "mase" in scores else "mae"
    scales = np.where(scales == 0, np.nan, scales) if name == "mase" else np.ones_like(scales)
    sums = {}
    for method, values in forecasts.items():
        errors = abs(values - targets) / scales[:, None]
        known = ~np.isnan(errors)
        of_windows = [np.where(known, errors, 0).sum(axis=1), known.sum(axis=1)]  # (n, C)
        if name == "mase":
            of_windows = [part.sum(axis=1, keepdims=True) for part in of_windows]
        rows = np.concatenate(of_windows, axis=1)
        sums[method] = np.stack([np.bincount(blocks, column) for column in rows.T], axis=1)
    measure = Measure(name.upper(), ratio if name == "mase" else _mean_of_targets, ERROR)
    named = {
        method: {error.upper(): value for error, value in errors.items()}
        for method, errors in scores["forecasts"].items()
    }
    formats = dict.fromkeys(named["model"], ".4g")
    return compared(measure, named, sums, formats, seed, learned_on)


def _mean_of_targets(sums):
    """Return the mean over C targets of sums of errors over their counts, of (..., 2 C) sums."""
    errors, counts = np.split(sums, 2, axis=-1)
    return (errors / counts).mean(axis=-1)


def forecast_errors(
    values: np.ndarray, targets: np.ndarray, scales: np.ndarray
) -> dict[str, float]:
    """Return the errors of (n, horizon, C) forecasts, means over targets; "mase" where the scales
    (n, C) that divide it are neither 0 nor NaN."""
    scales = np.where(scales == 0, np.nan, scales)
    errors = {
        "mae": float(mean_absolute_error(values, targets, (0, 1)).mean()),
        "rmse": float(root_mean_squared_error(values, targets, (0, 1)).mean()),
    }
    scaled = mean_absolute_error(values / scales[:, None], targets / scales[:, None])
    return errors | ({} if np.isnan(scaled) else {"mase": float(scaled)})


def forecast_table(scores: Mapping[str, Any]) -> Table:
    """Return a column for each forecast; rows of all, of targets if there are several, of steps;
    below them the samples that forecasts learn on. Six forecasts fit into 80 columns."""
    forecasts, by_target = scores["forecasts"], scores["by_target"]
    learned_on = scores.get("baselines", {}).get("learned_on", {})
    samples = [f"{method} on {sample}" for method, sample in learned_on.items()]
    by_mae = "targets and steps" if len(by_target) > 1 else "steps"
    table = Table(
        title=f"of {counted(scores['windows'], 'windows')}; {by_mae} by MAE",
        caption="; ".join(samples) or None,
        box=SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("", overflow="fold")
    for method in forecasts:
        table.add_column(method.replace(" ", "\n"), justify="right", no_wrap=True)
    for name in ("mae", "rmse", "mase"):
        if name in scores:
            numbers = (f"{errors[name]:.4g}" for errors in forecasts.values())
            table.add_row(name.upper(), *numbers)
    table.add_section()
    for target, errors in by_target.items() if len(by_target) > 1 else ():
        numbers = (f"{errors[method]['mae']:.4g}" for method in forecasts)
        table.add_row(one_line(target), *numbers)
    count = len(scores["by_step"]["model"])
    for step in sorted({*np.linspace(0, count - 1, min(count, MOST_STEPS)).astype(int)}):
        numbers = (f"{scores['by_step'][method][step]:.4g}" for method in forecasts)
        table.add_row(f"step {step + 1}", *numbers)
    return table


def forecast_summary(scores: Mapping[str, Any]) -> str:
    """Return the scores in a few words."""
    text = f"MAE is {scores['mae']:.4g}"
    if naive := [method for method in scores["forecasts"] if method in NAIVE]:
        beside = "better naive forecast" if len(naive) > 1 else f"naive forecast ({naive[0]})"
        if (better := scores.get("better_than_naive")) is None:
            text += f"; the MAE of the {beside} is 0"
        else:
            than = f"{abs(better):.1%} {'under' if better >= 0 else 'over'}"
            text += f", {than} the MAE of the {beside}"
    if "mase" in scores:
        text += f", MASE {scores['mase']:.3f}"
    if "coverage" in scores:
        expected, share = (scores["coverage"][name] for name in ("expected", "found"))
        share = scores.get("calibration", {}).get("after", {}).get("coverage", share)
        text += f"; {share:.1%} lie in the band of {expected:.0%}"
    return text
