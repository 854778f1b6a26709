"""Series of a user's file: what is decided and learned of them, and their windows."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.series import ArrayWindow, Series, Window, read_series, values_of
from seqkeras.data.time_steps import named_step
from seqkeras.metrics import naive_error
from seqkeras.runs import RunError
from seqkeras.serving.categories import category_of
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.forecast import Settings
from seqkeras.serving.rows import Column, Rows
from seqkeras.serving.times import TimeColumn
from seqkeras.spreading import evenly_spread
from seqkeras.training.console import console, say_merged
from seqkeras.training.parts.carried_windows import LONGEST
from seqkeras.training.parts.forecasting_defaults import (
    CAUSAL,
    DAY,
    LENGTHS,
    NO_CYCLE,
    context_of,
    cycles_of,
    held_out_of,
    step_in_days,
    waves_of,
)
from seqkeras.training.parts.forecasting_model import known_features
from seqkeras.training.parts.linear_forecast import Linear, LinearPart, Past, may_be_log
from seqkeras.training.parts.scaling import learned_categories, learned_numbers
from seqkeras.training.task import Reading
from seqkeras.training.wording import counted, listed

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions

KEPT = 32  # validation windows that go with the run
BETTER_BY_LOG = 0.98  # of an error, at which a target is read as its logarithm


class _Values:
    """Values of a series by column; numbers are read once.

    Args:
        series: the `Series`.
        names: names of the columns of values.
    """

    def __init__(self, series: Series, names: Sequence[str]):
        self.series = series
        first = len(series.rows[0]) - len(names)
        self._places = {name: first + index for index, name in enumerate(names)}
        self._numbers: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.series)

    def cells(self, name: str, end: int | None = None) -> list[Any]:
        """Return what the rows of a column have, up to a row."""
        return [row[self._places[name]] for row in self.series.rows[:end]]

    def of(self, column: Column) -> np.ndarray:
        """Return (rows, width) of a column, NaN where a number is missing."""
        if column.categories:
            return values_of(self.series, self._places[column.name], column)
        if column.name not in self._numbers:
            values = values_of(self.series, self._places[column.name], column)
            self._numbers[column.name] = values
        return self._numbers[column.name]


class ForecastingReading(Reading):
    """Windows of series, and the values that follow."""

    def __init__(self, options: FitOptions):
        super().__init__(options)
        self.train = []
        self.linear_parts: list[LinearPart] = []  # of the targets; none without a linear part
        self.by_window = options.scale_by == "window"
        self._context = options.context
        self.naive_errors = {}  # of the training part: name of a series -> of each target

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        all_series, time = self._read(options.file)
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
                self.naive_errors[windows[0].series.name] = [
                    naive_error(column) for column in windows[0].table[:part, : self.num_targets].T
                ]
        self._require_targets(all_series, parts, validation)
        self._say_unknown(options.file, all_series, self.rows)
        train, validation = with_targets(train), with_targets(validation)
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

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        trained = Settings(**parse_fields(Settings, settings, "settings", []))
        rows, self.naive_errors = trained.rows, trained.naive_errors
        window = Window
        if rows is None:  # of a model that reads arrays
            options, window = self.options, ArrayWindow
            names = (*options.targets, *options.numbers)
            rows = Rows(tuple(Column(name, known=name in options.known) for name in names))
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
            all_series, _ = self._read(path, rows.time)
            for series in all_series:
                windows += self._windows(series, rows, window)
            self._say_unknown(path, all_series, rows)
        windows = with_targets(windows)
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

    def _read(self, path, trained=None):
        """Return the `_Values` of the series of a file, and the `TimeColumn`, with what training
        has found if given."""
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
        return [_Values(series, self._names) for series in all_series], time

    def _learned(self, all_series, parts, time):
        """Return the `Rows` of the training parts."""
        options, learned = self.options, []
        for name in (*options.targets, *options.numbers):
            decimal = options.decimals.signs().get(name)
            values = [series.of(Column(name, decimal=decimal)) for series in all_series]
            values = np.concatenate([column[:part, 0] for column, part in zip(values, parts)])
            of_name = name in options.log, name in options.known, decimal
            learned.append(learned_numbers(options.file, name, values, *of_name))
        columns = [numbers.column for numbers in learned]
        for name in options.categories:
            texts = [
                cell for series, part in zip(all_series, parts) for cell in series.cells(name, part)
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
        tables = [self._table(series, rows)[:part] for series, part in zip(all_series, parts)]
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
        linear_parts = []
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
            linear_parts.append(part)
        return dataclasses.replace(rows, columns=tuple(columns)), linear_parts

    def _say_unknown(self, path, all_series, rows):
        """Say which categories of a file the model does not know."""
        for column in rows.columns:
            if not column.categories:
                continue
            cells = (
                category_of(cell) for series in all_series for cell in series.cells(column.name)
            )
            known = {None, *column.categories}
            if unknown := collections.Counter(cell for cell in cells if cell not in known):
                count = counted(unknown.total(), "rows", "row")
                console.print(
                    f"  {path}: {column.name!r} is {listed([*unknown])} in {count} and in none of "
                    "training: the model reads no category there"
                )

    def _table(self, series, rows):
        return rows.table([series.of(column) for column in rows.columns], series.series.times)

    def _windows(self, series, rows, window=Window):
        """Return all windows of a series, of a class."""
        options = self.options
        table = self._table(series, rows)
        sizes = self.context, options.horizon, self.num_targets
        self._require_known(series, rows)
        count = len(series) - self.context - options.horizon + 1
        starts = range(max(0, count))
        return [window(series.series, table, start, sizes, rows) for start in starts]

    def _require_known(self, series, rows):
        for column in rows.columns:
            if not column.known:
                continue
            missing = np.flatnonzero(np.isnan(series.of(column)).any(axis=1))
            if len(missing):
                where = series.series.where[missing[0]]
                raise RunError(f"{where}: {column.name!r} must have a value: it is --known.")

    def _require_targets(self, all_series, parts, validation):
        if validation and not with_targets(validation):
            rows, targets = sum(map(len, all_series)) - sum(parts), self.options.targets
            first = all_series[0].series.where[parts[0]].rpartition(", ")[2]
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
        if not train:
            raise RunError(
                f"{options.file}: {rows:,} rows leave no window of {self.context} and "
                f"{options.horizon} steps for training; choose a smaller --context or --horizon."
            )

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {}

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
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

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        return some_of(self._whole(self.options.file, validation), KEPT)

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


def with_targets(windows: Sequence[Window]) -> list[Window]:
    """Return the windows with at least one known target."""
    return [window for window in windows if not np.isnan(window.target).all()]


def some_of(windows: Sequence[Window], most: int) -> list[Window]:
    """Return at most so many windows, evenly spread."""
    return [windows[index] for index in evenly_spread(most, len(windows))]
