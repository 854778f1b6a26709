"""The values that follow a series of a user's file."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.analysis.forecast_plots import ForecastPlot, plot_forecasts
from seqkeras.data.series import ArrayWindow, Window, WindowArrays, read_series, values_of
from seqkeras.data.time_steps import named_step
from seqkeras.losses import ForecastLoss
from seqkeras.metrics import naive_error
from seqkeras.runs import FORECASTS, RunError
from seqkeras.serving.categories import category_of
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.forecast import Settings
from seqkeras.serving.rows import Column, Rows
from seqkeras.serving.times import TimeColumn, in_iso
from seqkeras.spreading import evenly_spread
from seqkeras.training.answering import answerer
from seqkeras.training.console import console, say_merged
from seqkeras.training.parts.baselines.forecasts import forecasts
from seqkeras.training.parts.carried_windows import LONGEST, carried_batches, in_training
from seqkeras.training.parts.forecast_bands import Held, calibrated_bands, draw_bands, in_words
from seqkeras.training.parts.forecasting_defaults import (
    CAUSAL,
    DAY,
    LENGTHS,
    NO_CYCLE,
    context_of,
    cycles_of,
    held_out_of,
    step_in_days,
    steps_of,
    waves_of,
)
from seqkeras.training.parts.forecasting_model import (
    BANDS,
    forecasting_model,
    known_features,
    scale_and_growth,
    with_bands,
)
from seqkeras.training.parts.forecasting_scores import (
    beside_baselines,
    forecast_errors,
    forecast_scores,
    forecast_summary,
    forecast_table,
)
from seqkeras.training.parts.linear_forecast import Linear, LinearPart, Past, may_be_log
from seqkeras.training.parts.scaling import learned_categories, learned_numbers
from seqkeras.training.task import Modelling, Reading, Scoring
from seqkeras.training.validation import LOSS
from seqkeras.training.wording import counted, listed

if TYPE_CHECKING:
    import keras

    from seqkeras.data.batches import Batches
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions

KEPT = 32  # validation windows that go with the run
LOOKED_AT = 256  # validation windows that are answered while it trains
PICTURED = 4
BETTER_BY_LOG = 0.98  # of an error, at which a target is read as its logarithm
SHORTER = (1, 2, 4, 8)  # parts of --context that are windows of a causal model's training


class ForecastingReading(Reading):
    """Windows of series, and the values that follow."""

    def __init__(self, options: FitOptions):
        super().__init__(options)
        self.train = []
        self.linear_parts: list[LinearPart] = []  # of the targets; none without a linear part
        self.by_window = options.scale_by == "window"
        self._context = options.context
        self.naive_errors = {}  # of the training part: name of a series -> of each target

    def read(self) -> tuple[list[Any], list[Any]]:
        options = self.options
        all_series, time = self._series(options.file)
        parts = [len(series) - self._held_out(len(series)) for series in all_series]
        time = self._decide(all_series, parts, time)
        self.rows = self._learned(all_series, parts, time)
        if options.linear is not False and not options.causal:
            self.rows, self.linear_parts = self._with_linear_parts(all_series, parts, self.rows)
        train, validation = [], []
        for series, part in zip(all_series, parts):
            windows = self._windows(series, self.rows)
            train += [window for window in windows if window.future.stop <= part]
            validation += [window for window in windows if window.future.start >= part]
            if windows:
                self.naive_errors[series.name] = [
                    naive_error(column) for column in windows[0].table[:part, : self.num_targets].T
                ]
        self._require_targets(all_series, parts, validation)
        self._say_unknown(options.file, all_series, self.rows)
        train, validation = _with_targets(train), _with_targets(validation)
        self._require_enough(all_series, train, validation)
        self._whole(options.file, validation)  # else nothing goes with the run
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation windows "
            f"of {self.context:,} steps, and {options.horizon:,} to come"
        )
        if time and options.gaps != "keep":
            day = " (its last day)" if time.day == 31 else ""
            console.print(f"  a step is {time.step_in_words}{day}")
        self.train, self.validation = train, validation
        return train, validation

    def examples_of(self, paths: Sequence[Path | str], settings: Mapping[str, Any]) -> list[Any]:
        found = Settings(**parse_fields(Settings, settings, "settings", []))
        rows, self.naive_errors = found.rows, found.naive_errors
        window = Window
        if rows is None:  # of a model that reads arrays
            own, window = self.options, ArrayWindow
            names = (*own.targets, *own.numbers)
            rows = Rows(tuple(Column(name, known=name in own.known) for name in names))
        names = tuple(column.name for column in rows.columns)
        cycles = self._cycles
        if names != self._names or cycles not in (None, rows.time.cycles if rows.time else ()):
            raise RunError(
                f"{paths[0]}: the options must be the training's, whose columns were "
                f"{', '.join(rows.names)}: --targets, --numbers, --categories, --time, --cycles, "
                "--context, --horizon."
            )
        windows = []
        for path in paths:
            found, _ = self._series(path, rows.time)
            for series in found:
                windows += self._windows(series, rows, window)
            self._say_unknown(path, found, rows)
        windows = _with_targets(windows)
        self._whole(paths[0], windows)
        return windows

    @property
    def context(self) -> int:
        """Steps of the past that the model reads, or that windows of a causal model have."""
        if self._context is None:
            self._context = CAUSAL if self.options.causal else self.source_length
        return self._context

    @property
    def num_targets(self) -> int:
        return len(self.options.targets)

    @property
    def _names(self):
        return (*self.options.targets, *self.options.numbers, *self.options.categories)

    @property
    def _cycles(self):
        """The cycles that the options name; None where they leave them open."""
        cycles = self.options.cycles
        return () if cycles == (NO_CYCLE,) else cycles

    def _in_words(self):
        return f"a window of --context {self.context} and --horizon {self.options.horizon} steps"

    def _series(self, path, trained=None):
        """Return series of a file, and the `TimeColumn`, with what training has found if given."""
        options = self.options
        time = None
        step = None if trained is None else (trained.step, trained.unit)
        if step is None and options.step is not None:
            step = named_step(options.step)
        if options.time:
            has_offset = None if trained is None else trained.has_offset
            form = options.time, options.time_format
            cycles = self._cycles if trained is None else trained.cycles
            time = TimeColumn(*form, cycles=cycles or (), has_offset=has_offset)
            if problems := [*time.problems()]:
                raise RunError(f"--time: {problems[0]}.")
        all_series, time, filled = read_series(
            path, self._names, time, options.series_column, options.gaps, step
        )
        if options.series_column is not None:
            written = (spelling for series in all_series for spelling in series.spellings)
            say_merged(path, options.series_column, written)
        if filled:
            rows = counted(filled, "rows were", "row was")
            console.print(f"  {rows} missing between others: rows without values stand there")
        return all_series, time

    def _learned(self, all_series, parts, time):
        """Return the `Rows` of the training parts."""
        options, learned = self.options, []
        for name in (*options.targets, *options.numbers):
            decimal = options.decimals.signs().get(name)
            values = [self._values(series, Column(name, decimal=decimal)) for series in all_series]
            values = np.concatenate([column[:part, 0] for column, part in zip(values, parts)])
            of_name = name in options.log, name in options.known, decimal
            learned.append(learned_numbers(options.file, name, values, *of_name))
        columns = [numbers.column for numbers in learned]
        for name in options.categories:
            index = self._place(all_series[0], name)
            texts = [
                row[index] for series, part in zip(all_series, parts) for row in series.rows[:part]
            ]
            columns.append(
                learned_categories(options.file, name, texts, known=name in options.known)
            )
        time = time if time and time.cycles else None
        rows = Rows(tuple(columns), time, options.series_column)
        self.spreads = [numbers.spread for numbers in learned[: self.num_targets]]
        return rows

    def _held_out(self, rows):
        share = self.options.held_out
        return held_out_of(rows, self.options.horizon) if share is None else round(share * rows)

    def _decide(self, all_series, parts, time):
        """Decide what the options leave open, by the training rows; return the `TimeColumn` with
        its cycles."""
        options, rows = self.options, max(parts)
        if options.scale_by is None:
            self.by_window = len(all_series) > 1 and not options.causal
        if time is not None and options.gaps != "keep":
            if options.cycles is None and not options.causal:
                time = dataclasses.replace(time, cycles=cycles_of(time, rows))
        else:
            time = None
        if options.context is None:
            self._context = CAUSAL if options.causal else context_of(time, rows, options.horizon)
        return time

    def _with_linear_parts(self, all_series, parts, rows):
        """Return the `Rows`, with targets whose logarithm is the better to forecast, and the
        `LinearPart` of each target, of numbers as the model reads them."""
        options, columns = self.options, [*rows.columns]
        values = [[self._values(series, column) for column in columns] for series in all_series]
        tables = [
            rows.table(of, series.times)[:part]
            for of, series, part in zip(values, all_series, parts)
        ]
        filled = [rows.filled(table) for table in tables]
        known = [rows.scaled(table)[:, known_features(rows)].astype("float64") for table in filled]
        cycles = rows.time.cycles if rows.time else ()
        linear = Linear(
            self.context,
            options.horizon,
            rows.num_known - 2 * len(cycles),
            tuple(waves_of(rows.time, name) for name in cycles),
            max((LENGTHS[name] / DAY / step_in_days(rows.time) for name in cycles), default=None),
            self.by_window,
        )
        found = []
        for index, name in enumerate(options.targets):
            pasts = [
                Past(table[:, index], whole[:, index], features)
                for table, whole, features in zip(tables, filled, known)
            ]
            column, part = (
                columns[index],
                dataclasses.replace(linear, log=columns[index].log).fit(pasts),
            )
            numbers = np.concatenate([past.values for past in pasts])
            if part and not column.log and may_be_log(numbers):
                of_log = dataclasses.replace(linear, log=True).fit(pasts)
                if of_log and of_log.error < BETTER_BY_LOG * part.error:
                    flags = True, column.known, column.decimal
                    column, part = (
                        learned_numbers(options.file, name, numbers, *flags).column,
                        of_log,
                    )
                    columns[index] = column
                    console.print(f"  {name!r} is read as its logarithm")
            if part is None:
                part = linear.careful(pasts)
            if not self.by_window:
                part = part.scaled(column.mean, column.deviation)
            found.append(part)
        return dataclasses.replace(rows, columns=tuple(columns)), found

    def _say_unknown(self, path, all_series, rows):
        """Say which categories of a file the model does not know."""
        for column in rows.columns if all_series else ():
            index, known = self._place(all_series[0], column.name), {None, *column.categories}
            cells = (category_of(row[index]) for series in all_series for row in series.rows)
            unknown = collections.Counter(cell for cell in cells if cell not in known)
            if column.categories and unknown:
                count = counted(unknown.total(), "rows", "row")
                console.print(
                    f"  {path}: {column.name!r} is {listed([*unknown])} in {count} and in none of "
                    "training: the model reads no category there"
                )

    def _place(self, series, name):
        return len(series.rows[0]) - len(self._names) + self._names.index(name)

    def _values(self, series, column):
        """Return the values of one column."""
        column_index = self._place(series, column.name)
        return values_of(series, column_index, column)

    def _windows(self, series, rows, window=Window):
        """Return all windows of a series, of a class."""
        options = self.options
        values = [self._values(series, column) for column in rows.columns]
        table = rows.table(values, series.times)
        sizes = self.context, options.horizon, self.num_targets
        self._require_known(series, rows, values)
        count = len(series) - self.context - options.horizon + 1
        return [window(series, table, start, sizes, rows) for start in range(max(0, count))]

    def _require_known(self, series, rows, values):
        for column, numbers in zip(rows.columns, values):
            missing = np.flatnonzero(np.isnan(numbers).any(axis=1))
            if column.known and len(missing):
                raise RunError(
                    f"{series.where[missing[0]]}: {column.name!r} must have a value: it is --known."
                )

    def _require_targets(self, all_series, parts, validation):
        if validation and not _with_targets(validation):
            rows, targets = sum(map(len, all_series)) - sum(parts), self.options.targets
            first = all_series[0].where[parts[0]].rpartition(", ")[2]
            raise RunError(
                f"{self.options.file}: {' and '.join(map(repr, targets))} "
                f"{'have' if len(targets) > 1 else 'has'} no value in the {rows:,} rows that are "
                f"held out, from {first} on; leave out what has no targets, or choose a larger "
                "--held-out."
            )

    def _require_enough(self, all_series, train, validation):
        options = self.options
        rows = sum(map(len, all_series))
        if not validation:
            raise RunError(
                f"{options.file}: {rows:,} rows leave no validation window: {self._in_words()} "
                "must end in the held out rows; choose smaller ones, or a larger --held-out."
            )
        if len(train) < options.batch_size:
            raise RunError(
                f"{options.file}: {rows:,} rows leave {counted(len(train), 'windows')} for "
                f"training, of {self.context} and {options.horizon} steps: fewer than the "
                f"{options.batch_size} of a batch; choose a smaller --context, --horizon or "
                "--batch-size."
            )

    def tokenizers(self, examples: list[Any]) -> dict[str, Tokenizer]:
        return {}

    def record(self, examples: list[Any], tokenizers: Mapping[str, Tokenizer]) -> dict[str, Any]:
        return {
            "pipeline": "Forecast",
            "limits": {"source_length": LONGEST if self.options.causal else self.context},
            "settings": {
                "quantiles": self.options.quantiles,
                "rows": dataclasses.asdict(self.rows),
                "naive_errors": {
                    name: errors
                    for name, errors in self.naive_errors.items()
                    if np.isfinite(errors).all()
                },
            },
        }

    def kept(self, validation: list[Any]) -> list[Any]:
        return _spread(self._whole(self.options.file, validation), KEPT)

    def _whole(self, path, windows):
        """Return the windows without a missing target, one at least."""
        whole = [window for window in windows if not np.isnan(window.target).any()]
        if whole:
            return whole
        context, horizon = self.context, self.options.horizon
        if not windows:
            raise RunError(
                f"{path}: no window of {context:,} and {horizon:,} steps has a target; a series "
                f"needs {context + horizon:,} rows at least."
            )
        tables = {id(window.table): window.table for window in windows}
        targets = np.concatenate([*tables.values()])[:, : self.num_targets]
        counts = (~np.isnan(targets)).sum(axis=0)
        short_parts = (
            f"{name!r} has a value in {count:,} of {len(targets):,} rows"
            for name, count in zip(self.options.targets, counts)
        )
        raise RunError(
            f"{path}: no window has all of its targets of {counted(horizon, 'steps')}: "
            f"{', '.join(short_parts)}; choose a smaller --horizon, or rows with more targets."
        )


class ForecastingModelling(Modelling):
    """Windows of series to a model of the steps to come."""

    validation_loss = True

    @property
    def looks_first(self) -> bool:
        return bool(self.reading.linear_parts)

    @property
    def streams(self) -> bool:
        return self.options.causal

    def arrays(self, examples: list[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        inputs = {"window": WindowArrays(examples, "window")}
        if examples[0].rows.num_known:
            inputs["known"] = WindowArrays(examples, "known")
        lengths = np.full(len(examples), self.reading.context)
        return inputs, WindowArrays(examples, "target"), lengths

    def batches(self, examples: list[Any], run: RunFiles) -> Batches:
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
    """Errors of forecasts, beside those of naive ones."""

    picture = FORECASTS
    best_by = LOSS
    lower_is_better = ("MAE", "RMSE", "MASE")
    score_formats = {"MAE": ".4g", "RMSE": ".4g", "MASE": ".3f"}

    def looked_at(self, examples: list[Any]) -> list[Any]:
        if len(examples) > LOOKED_AT:
            console.print(
                f"  MAE, RMSE and MASE of looks are of {LOOKED_AT} of the {len(examples):,} "
                f"validation windows, evenly spread; {LOSS} and scores.json are of all"
            )
        return _spread(examples, LOOKED_AT)

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        past, came = (example.table[part, 0] for part in (example.past, example.future))
        return {
            "past": _written(past[-self.options.horizon :]),
            "came": _written(came),
            "answer": _written(answer.values[:, 0]),
        }

    def validation_scores(self, examples: list[Any], answers: Sequence[Any]) -> dict[str, float]:
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

    def scores(self, answered: Mapping[str, tuple[list[Any], Sequence[Any]]]) -> dict[str, Any]:
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

    def calibrated(
        self,
        model: keras.Model,
        answered: Mapping[str, tuple[list[Any], Sequence[Any]]],
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

    def draw_calibration(self, calibration: dict[str, Any], path: Path | str) -> None:
        draw_bands(calibration, path)

    def shown(self, scores: Mapping[str, Any]) -> Iterator[Any]:
        yield self.table(scores)
        if comparison := scores.get("baselines"):
            yield f"  {comparison['summary']}"
        if calibration := scores.get("calibration"):
            yield f"  {in_words(calibration)}"

    def draw(self, model: keras.Model, run: RunFiles, path: Path | str) -> None:
        """Draw the first target of a few validation windows: the past, what came, the forecast and
        the better of the naive ones."""
        validation = self.reading.validation
        places = evenly_spread(PICTURED, len(validation))
        windows = [validation[place] for place in places]
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
                {name: values[place][:, 0] for name, values in naive.items()},
                _times(window, most),
            )
            for place, window, answer in zip(places, windows, answers)
        ]
        plot_forecasts(plots, self.options.targets[0], path)

    def table(self, scores: Mapping[str, Any]) -> Any:
        return forecast_table(scores)

    def summary(self, scores: Mapping[str, Any]) -> str:
        return forecast_summary(scores)


def _targets_of(windows):
    return np.stack([window.target for window in windows]).astype("float64")


def _scaled(columns, values):
    """Return (n, H, C, …) values as the model has them."""
    scaled = [column.scaled(values[:, :, place]) for place, column in enumerate(columns)]
    return np.stack(scaled, axis=2)


def _with_targets(windows):
    """Return the windows with at least one known target."""
    return [window for window in windows if not np.isnan(window.target).all()]


def _spread(examples, most):
    """Return at most so many windows, evenly spread."""
    return [examples[index] for index in evenly_spread(most, len(examples))]


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
