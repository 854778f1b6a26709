"""The values that follow a series of a user's file: models of its windows, and their scores."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.analysis.forecast_plots import ForecastPlot, plot_forecasts
from seqkeras.data.series import WindowArrays
from seqkeras.losses import ForecastLoss
from seqkeras.runs import FORECASTS, RunError
from seqkeras.serving.times import in_iso
from seqkeras.spreading import evenly_spread
from seqkeras.training.answering import answerer
from seqkeras.training.console import console
from seqkeras.training.parts.baselines.forecasts import forecasts
from seqkeras.training.parts.carried_windows import carried_batches, in_training
from seqkeras.training.parts.forecast_bands import Held, calibrated_bands, draw_bands, in_words
from seqkeras.training.parts.forecasting_defaults import (
    steps_of,
)
from seqkeras.training.parts.forecasting_model import (
    BANDS,
    forecasting_model,
    scale_and_growth,
    with_bands,
)
from seqkeras.training.parts.forecasting_reading import some_of
from seqkeras.training.parts.forecasting_scores import (
    beside_baselines,
    forecast_errors,
    forecast_scores,
    forecast_summary,
    forecast_table,
)
from seqkeras.training.task import Calibrating, Modelling, Scoring
from seqkeras.training.validation import LOSS

if TYPE_CHECKING:
    import keras

    from seqkeras.data.batches import Batches
    from seqkeras.runs import RunFiles

LOOKED_AT = 256  # validation windows that are answered while it trains
PICTURED = 4
SHORTER = (1, 2, 4, 8)  # parts of --context that are windows of a causal model's training


class ForecastingModelling(Modelling):
    """Windows of series to a model of the steps to come."""

    validation_loss = True

    @property
    def looks_first(self) -> bool:
        return bool(self.reading.linear_parts)

    @property
    def streams(self) -> bool:
        return self.options.causal

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        inputs = {"window": WindowArrays(examples, "window")}
        if examples[0].rows.num_known:
            inputs["known"] = WindowArrays(examples, "known")
        lengths = np.full(len(examples), self.reading.context)
        return inputs, WindowArrays(examples, "target"), lengths

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        if self.carries_state():
            return self._carried(examples)
        batches = super().batches(examples, run)
        if self.options.causal:
            lengths = [max(self.reading.context // part, 1) for part in SHORTER]
            batches.arrays[0]["window"] = WindowArrays(examples, "window", lengths=lengths)
        return batches

    def _carried(self, examples):
        """Return batches whose rows go on through the series, with a forecast after each step."""
        options, rows = self.options, examples[0].rows
        ends = {id(window.table): (window, window.future.start) for window in examples}
        steps, tables = [], []
        for window, end in ends.values():
            sizes = 1, *window.sizes[1:]
            steps += [dataclasses.replace(window, start=n, sizes=sizes) for n in range(end)]
            tables.append(rows.scaled(rows.filled(window.table[:end])))
        inputs = {"window": np.concatenate(tables)[:, : rows.num_features]}
        if rows.num_known:
            inputs["known"] = WindowArrays(steps, "known")
        sizes = [*map(len, tables)]
        return carried_batches(options, inputs, WindowArrays(steps, "target"), sizes, math.nan)

    def carries_state(self) -> tuple[str, str] | None:
        return ("--carry-every", "--causal true alone") if self.options.carry_every else None

    def num_steps(self, batches: Batches) -> int:
        if self.options.passes is None:
            return steps_of(batches.order.batches_per_pass)
        return super().num_steps(batches)

    def model(self, run: RunFiles) -> keras.Model:
        model = forecasting_model(self.options, self.reading)
        return in_training(model, self.options, "window")

    def mean_of(self, members: Sequence[keras.Model]) -> keras.Model:
        model = super().mean_of(members)
        return with_bands(self.options, model) if self.options.has_bands() else model

    def loss(self) -> Any:
        options = self.options
        kind = "quantiles" if options.quantiles else options.loss
        scale, growth = scale_and_growth(self.reading.rows, self.reading.spreads)
        return ForecastLoss(kind, scale, options.quantiles, growth)


class ForecastingScoring(Scoring):
    """Errors of forecasts, beside the errors of naive forecasts."""

    picture = FORECASTS
    best_by = LOSS
    lower_is_better = ("MAE", "RMSE", "MASE")
    score_formats = {"MAE": ".4g", "RMSE": ".4g", "MASE": ".3f"}

    def looked_at(self, examples: Sequence[Any]) -> Sequence[Any]:
        if len(examples) > LOOKED_AT:
            console.print(
                f"  MAE, RMSE and MASE of looks are of {LOOKED_AT} of the {len(examples):,} "
                f"validation windows, evenly spread; {LOSS} and scores.json are of all"
            )
        return some_of(examples, LOOKED_AT)

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        past, came = (example.table[part, 0] for part in (example.past, example.future))
        return {
            "past": _written(past[-self.options.horizon :]),
            "came": _written(came),
            "answer": _written(answer.values[:, 0]),
        }

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        values = np.stack([answer.values for answer in answers])
        errors = forecast_errors(values, _targets_of(examples), self._scales(examples))
        return {name.upper(): error for name, error in errors.items()}

    def _require_shape(self, shape, expected):
        if shape != expected:
            raise RunError(
                f"--horizon and --targets say {expected[0]:,} steps of {expected[1]:,} targets; "
                f"the model answers {shape[0]:,} steps of {shape[1]:,}."
            )

    def _scales(self, windows):
        """Return what MASE is measured by, of each window and target; NaN where it is unknown."""
        unknown = [np.nan] * self.reading.num_targets
        return np.array(
            [self.reading.naive_errors.get(window.series.name, unknown) for window in windows]
        )

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        self._require_shape(answers[0].values.shape, examples[0].target.shape)
        options, train = self.options, self.reading.train
        plain, learned_on = forecasts(examples, options, train) if options.baselines else ({}, {})
        targets, scales = _targets_of(examples), self._scales(examples)
        scores = forecast_scores(answers, targets, plain, options.targets, scales)
        if plain and train:
            values = {"model": np.stack([answer.values for answer in answers])} | plain
            blocks = _blocks(examples, options.horizon)
            scores["baselines"] = beside_baselines(
                scores, values, targets, scales, blocks, options.seed, learned_on
            )
        return scores

    def shown(self, scores: Mapping[str, Any]) -> Iterator[Any]:
        yield self.table(scores)
        if comparison := scores.get("baselines"):
            yield f"  {comparison['summary']}"
            if comparison["ahead"] < 0 and self._may_know_more():
                log = ",".join(self.options.targets)
                yield f"  the linear part knows --known columns with --scale-by file --log {log}"
        if calibration := scores.get("calibration"):
            yield f"  {in_words(calibration)}"

    def _may_know_more(self):
        """Return whether the linear part leaves out --known columns, and might read them: of
        targets of several series that are never negative."""
        options, reading = self.options, self.reading
        if not (reading.by_window and reading.linear_parts and options.known):
            return False
        tables = {id(window.table): window.table for window in reading.train}
        lowest = [np.nanmin(table[:, : reading.num_targets]) for table in tables.values()]
        return len(tables) > 1 and min(lowest) >= 0

    def draw(self, model: keras.Model, run: RunFiles, path: Path | str) -> None:
        """Draw the first target of a few validation windows: the past, what came, the forecast and
        the better of the naive ones."""
        validation = self.reading.validation
        places = evenly_spread(PICTURED, len(validation))
        windows = [validation[index] for index in places]
        answers = answerer(run)(model, [window.text for window in windows])
        naive = _better_naive(validation, self.options)
        most = 4 * self.options.horizon + 24
        plots = [
            ForecastPlot(
                _when(window),
                window.table[window.past, 0][-most:],
                window.target[:, 0],
                answer.values[:, 0],
                {quantile: values[:, 0] for quantile, values in answer.quantiles.items()},
                {name: values[index][:, 0] for name, values in naive.items()},
                _times(window, most),
            )
            for index, window, answer in zip(places, windows, answers)
        ]
        plot_forecasts(plots, self.options.targets[0], path)

    def table(self, scores: Mapping[str, Any]) -> Any:
        return forecast_table(scores)

    def summary(self, scores: Mapping[str, Any]) -> str:
        return forecast_summary(scores)


class ForecastingCalibrating(Calibrating):
    """Bands that hold the share of targets that they say."""

    def calibrated(
        self,
        model: keras.Model,
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: RunFiles,
    ) -> dict[str, Any] | None:
        options = self.options
        if not options.has_bands():
            return None
        [(windows, answers)] = answered.values()
        columns = self.reading.rows.columns[: self.reading.num_targets]
        values = [
            np.stack([answer.quantiles[quantile] for answer in answers])
            for quantile in options.quantiles
        ]
        numbers: dict[int, int] = {}
        held = Held(
            _scaled(columns, np.stack(values, axis=-1)),
            _scaled(columns, _targets_of(windows)),
            np.array([window.future.start for window in windows]),
            np.array([numbers.setdefault(id(w.table), len(numbers)) for w in windows]),
        )
        factors, calibration = calibrated_bands(options.quantiles, held)
        layer = model.get_layer(BANDS)
        layer.factors.assign(layer.factors * factors)  # of --start-from, too
        by_target = dict(zip(options.targets, factors.tolist()))
        return {"factors": by_target, **calibration}

    def draw(self, calibration: dict[str, Any], path: Path | str) -> None:
        draw_bands(calibration, path)


def _targets_of(windows):
    return np.stack([window.target for window in windows]).astype("float64")


def _scaled(columns, values):
    """Return (n, H, C, …) values as the model has them."""
    scaled = [column.scaled(values[:, :, index]) for index, column in enumerate(columns)]
    return np.stack(scaled, axis=2)


def _blocks(windows, horizon):
    """Return (n,) the number of each window's block: windows of a series that follow each other, as
    many as there are steps to come."""
    numbers: dict[Any, int] = {}
    keys = [(id(window.table), window.start // horizon) for window in windows]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _better_naive(windows, options):
    """Return the name and the forecasts of the naive baseline that is nearer to the targets, as a
    dictionary; none without --baselines."""
    if not options.baselines:
        return {}
    targets = _targets_of(windows)
    with console.capture():  # the scores tell why there is no season
        naive, _ = forecasts(windows, options)
    name = min(naive, key=lambda name: np.nanmean(abs(naive[name] - targets)[..., 0]))
    return {name: naive[name]}


def _times(window, most):
    """Return the times of the last rows of a window, `most` of its past and all to come, if it has
    some."""
    times, past = window.series.times, window.past
    if times is None:
        return None
    return times[max(past.start, past.stop - most) : window.future.stop]


def _written(numbers):
    return " ".join(f"{number:.10g}" for number in numbers)


def _when(window):
    """Return the name of a series, and the last time, or line, of a window's past."""
    name, times = window.series.name, window.series.times
    if times is None:
        return f"{name} {window.series.where[window.past.stop - 1]}".strip()
    last = in_iso(times[window.past.stop - 1])
    if (times == times.astype("M8[D]")).all():  # days, without an hour
        last = last.removesuffix("T00:00:00")
    return f"{name} {last}".strip()
