"""Rows of a table, such as lines of a CSV file, as the numbers that a forecaster reads.

The features of a step stand in this order:

    numbers     z = (g(x) - mean) / deviation of the value x of each column of numbers, with
                g(x) = log(1 + x) of a column with `log`, else x; a missing value is the last that
                was there, and before the first the column's `fill`
    missing     of each column that `may_be_missing`: 1 where the value is missing, else 0
    categories  of each column of categories: 1 for the one that it is, 0 for the others; a category
                that is missing or unknown is 0 for all (`serving.categories` says what it is)
    cycles      sine and cosine of the phase of the row's time, in each cycle

The model reads float32. All before that is float64, so that neither the size of a column's values
nor a level far from 0 takes their digits. A forecast y of a column is g^-1(mean + deviation y).

Training and serving read rows by this file and `serving.times` alone.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .categories import category_of, is_missing
from .checks import shown
from .times import FIRST, LAST, TimeColumn, in_iso
from .written_numbers import DECIMALS, number_of

MOST = 3e38  # of float32
MOST_LISTED = 12  # categories in an error
MOST_MISSING = 10_000  # rows that may be put into gaps
GAPS = ("refuse", "fill")
WAY_OVER_GAPS = "; rows that are missing may be given without values"
OF_WINDOWS = f'{WAY_OVER_GAPS} (gaps="fill", --gaps fill)'
OF_STREAMS = f"{WAY_OVER_GAPS} (Stream.missing, --gaps fill)"


@dataclass(frozen=True)
class Column:
    """A column of numbers, or of categories.

    Attributes:
        name: in the header.
        categories: categories of a column of categories, in the words of `serving.categories`; none
            for numbers.
        fill: the number that stands for a missing one, where none is before it.
        may_be_missing: whether the model is told where a number is missing.
        known: whether the values of the forecast's steps are known.
        decimal: "." or "," of numbers as people write them (`serving.written_numbers`); None of
            numbers as data has them.
        mean, deviation, log: of a column of numbers, how the model reads it; see the head of this
            module. Numbers under 0 are as 0 to the logarithm.
    """

    name: str
    categories: tuple[str, ...] = ()
    fill: float = 0.0
    may_be_missing: bool = False
    known: bool = False
    decimal: str | None = None
    mean: float = 0.0
    deviation: float = 1.0
    log: bool = False

    @property
    def width(self):
        """Number of values of the column in a row, without the flag of a missing value."""
        return len(self.categories) or 1

    def values(self, given, where):
        """Return (rows, width) float64, not yet scaled; NaN where a number is missing.

        Args:
            given: the value of each row.
            where: index of a row -> its name, for errors.

        Raises:
            ValueError: if a value is neither missing nor a finite number, or no category.
        """
        if self.categories:
            hot = np.zeros((len(given), self.width))
            index_of = {name: index for index, name in enumerate(self.categories)}
            for row, category in enumerate(self.categories_of(given, where)):
                if category in index_of:
                    hot[row, index_of[category]] = 1
            return hot
        return np.array([[self.number(value, row, where)] for row, value in enumerate(given)])

    def scaled(self, numbers):
        """Return what the model reads of numbers, in float64; categories stay."""
        return _scaled(numbers, self.mean, self.deviation, self.log or None)

    def unscaled(self, numbers):
        """Return the values, in float64, whose `scaled` numbers these are."""
        read = self.mean + self.deviation * np.asarray(numbers, "float64")
        return np.expm1(read) if self.log else read

    def problems(self):
        """Yield what is wrong."""
        if self.categories and self.may_be_missing:
            yield f"a category that is missing is no number: {self.name!r} may not be both"
        if wrong := [name for name in self.categories if category_of(name) != name]:
            yield (
                f"categories must be written as they are read: {wrong[0]!r} of {self.name!r} is "
                f"read as {category_of(wrong[0])!r}"
            )
        if self.decimal not in (None, *DECIMALS):
            yield (
                f"decimal of {self.name!r} must be {' or '.join(DECIMALS)}, or null; received "
                f"{self.decimal!r}"
            )
        for name in ("fill", "mean", "deviation"):
            if not math.isfinite(number := getattr(self, name)):
                yield f"{name} of {self.name!r} must be finite; received {number}"
        if self.deviation <= 0:
            yield f"deviation of {self.name!r} must be over 0; received {self.deviation}"
        if self.categories and (self.mean, self.deviation, self.log) != (0, 1, False):
            yield f"categories are not scaled: {self.name!r} may have no mean, deviation or log"

    def categories_of(self, given, where):
        """Return the category of each row, None where it is missing; see `values` for the
        arguments."""
        categories = []
        for row, value in enumerate(given):
            try:
                categories.append(category_of(value))
            except ValueError as error:
                raise ValueError(f"{where(row)}: {self.name!r} {error}.") from error
        return categories

    def number(self, value, row, where):
        """Return the number of a value, NaN of a missing one; see `values` for errors."""
        if isinstance(value, float) and -MOST < value < MOST:
            return value
        if is_missing(value):
            return math.nan
        try:
            number = math.inf if isinstance(value, bool | np.bool_) else self._float(value)
        except (OverflowError, TypeError, ValueError):
            number = math.inf
        if not abs(number) < MOST:
            expected = "a number" if math.isinf(number) else "a number of float32, under 3e38"
            raise ValueError(
                f"{where(row)}: {self.name!r} must be {expected}; received {shown(value)}."
            )
        return number

    def _float(self, value):
        if not isinstance(value, str):
            return float(value)
        number = number_of(value, self.decimal)
        return math.inf if number is None else number


class Memory(NamedTuple):
    """What rows remember of those before them.

    Attributes:
        numbers: the last numbers of columns of numbers, with what stands for missing ones; None
            before the first row.
        time: the time of the last row, in microseconds since 1970; None without one.
        series: the series of the rows, as a category; None where rows name none.
    """

    numbers: tuple | None = None
    time: int | None = None
    series: str | None = None

    @classmethod
    def of(cls, numbers=None, time=None, series=None):
        """Return a memory of values from JSON.

        Raises:
            ValueError: if they are none.
        """
        values = () if numbers is None else numbers
        finite = isinstance(values, list | tuple) and all(
            isinstance(number, int | float) and math.isfinite(number) for number in values
        )
        in_range = time is None or (type(time) is int and FIRST <= time < LAST)
        if not finite or not in_range or not isinstance(series, str | None):
            raise ValueError("their memory of rows holds no numbers, time and series")
        return cls(None if numbers is None else tuple(numbers), time, series)


NOTHING = Memory()


@dataclass(frozen=True)
class Rows:
    """Columns of a row; the targets are the first columns.

    Attributes:
        columns: tuple of `Column`s.
        time: a `TimeColumn`, if the model reads its cycles.
        series: the name of the column that tells several series of a file apart, or None.
    """

    columns: tuple[Column, ...]
    time: TimeColumn | None = None
    series: str | None = None

    @functools.cached_property
    def names(self):
        """The names of a row's values, in their order."""
        return (
            *(self.time.columns if self.time else ()),
            *(column.name for column in self.columns),
        )

    @property
    def num_features(self):
        """Number of values that the model reads from a row of the past."""
        missing = sum(column.may_be_missing for column in self.columns)
        return sum(column.width for column in self.columns) + missing + self._num_phases

    @property
    def num_known(self):
        """Number of values that the model reads from a row of the future."""
        return sum(column.width for column in self.known) + self._num_phases

    @functools.cached_property
    def numbers(self):
        """The columns of numbers."""
        return tuple(column for column in self.columns if not column.categories)

    @functools.cached_property
    def _scales(self):
        """The mean, the deviation and the `log` of each column of numbers; None where no column has
        a `log`."""
        log = [column.log for column in self.numbers]
        mean, deviation = (
            [getattr(column, name) for column in self.numbers] for name in ("mean", "deviation")
        )
        return np.array(mean), np.array(deviation), np.array(log) if any(log) else None

    @property
    def known(self):
        """The columns whose future is known."""
        return tuple(column for column in self.columns if column.known)

    @property
    def _num_phases(self):
        return 2 * len(self.time.cycles) if self.time else 0

    def problems(self):
        """Yield what is wrong."""
        if not self.columns or len(set(self.names)) < len(self.names):
            yield f"rows must have columns of different names; received {', '.join(self.names)}"
        for column in self.columns:
            yield from column.problems()
        yield from self.time.problems() if self.time else ()

    def window(self, rows, name):
        """Return (length, num_features) float32, and the time of the last row or None.

        Args:
            rows: tuple, list or array of rows; each a dictionary by name, which may hold more, or
                the values in the order of `names`.
            name: name of the input, for errors.

        Raises:
            ValueError: beginning with `name`, if they can not be read.
        """
        features, times, _ = self.following(rows, name, NOTHING)
        return features, None if times is None else times[-1]

    def following(self, rows, name, memory):
        """Return (length, num_features) float32 of rows that follow others, the times of the rows
        or None, and the `Memory` after them; see `window`."""
        if memory.numbers is not None and len(memory.numbers) != len(self.numbers):
            raise ValueError(f"{name}: the state is of rows with other columns; begin anew.")
        fields = self._fields(rows, name, self.names)
        where = _where(name, rows)
        series = self._series_of(rows, where, memory.series)
        times = None
        if self.time is not None:
            size = len(self.time.columns)
            parts = [row[:size] for row in fields]
            times = [self.time.read(part, where(index)) for index, part in enumerate(parts)]
            self.time.offsets(parts, where)
            times = np.array(times)
            if memory.time is None:
                self.time.require_steps(times, where, OF_WINDOWS)
            else:
                before = np.array([memory.time], "M8[us]")
                following = np.concatenate([before, times])
                self.time.require_steps(following, lambda index: where(index - 1), OF_STREAMS)
        table = self._table(fields, times, where)
        if memory.numbers is not None:
            before = np.zeros((1, table.shape[1]))
            before[0, : len(memory.numbers)] = memory.numbers
            table = np.concatenate([before, table])
        filled = self.filled(table)
        last = tuple(filled[-1, : len(self.numbers)].tolist())
        time = None if times is None else int(times[-1].astype("int64"))
        return self.scaled(filled[-len(fields) :]), times, Memory(last, time, series)

    def _series_of(self, rows, where, series):
        """Return the series of rows that follow those of a series; None where rows name none.

        Raises:
            ValueError: if they are of several.
        """
        if self.series is None:
            return series
        for index, row in enumerate(rows):
            name = category_of(row.get(self.series)) if isinstance(row, Mapping) else None
            if name is None or name == series:
                continue
            if series is not None:
                raise ValueError(
                    f"{where(index)}: {self.series!r} must be {series!r}, as before, for a series "
                    f"is read alone; received {shown(name)}."
                )
            series = name
        return series

    def missing_before(self, row, name, memory):
        """Return the rows without values that are missing between the rows so far and a row: each
        the texts of its time, and None for the others.

        Args:
            row, name: a row, and its name for errors; see `window`.
            memory: the `Memory` of the rows so far.

        Raises:
            ValueError: beginning with `name`, if the row can not be read, or more rows are missing
                than `MOST_MISSING`.
        """
        if self.time is None or memory.time is None:
            return []
        size = len(self.time.columns)
        time = self.time.read(self._row(row, lambda _: name, 0, self.names)[:size], name)
        times = np.array([np.datetime64(memory.time, "us"), time])
        filled = self._without_gaps([None, row], times, [None, name])
        return [values for values, _, _ in filled[1:-1]]

    def without_gaps(self, rows, name):
        """Return rows, and a row without values for each that is missing by its time.

        Args:
            rows, name: see `window`.

        Raises:
            ValueError: beginning with `name`, if a row can not be read, or more rows are missing
                than `MOST_MISSING`.
        """
        if self.time is None:
            return rows
        where, size = _where(name, rows), len(self.time.columns)
        fields = self._fields(rows, name, self.names)
        labels = [where(index) for index in range(len(rows))]
        self._series_of(rows, where, None)  # which the values alone do not tell
        times = [self.time.read(row[:size], label) for row, label in zip(fields, labels)]
        filled = self._without_gaps(fields, np.array(times), labels)
        return [_LocatedRow(row, label.removeprefix(f"{name}, ")) for row, _, label in filled]

    def _without_gaps(self, rows, times, where):
        """Return what `TimeColumn.without_gaps` returns, of gaps that are not too long together."""
        counts, are_near = self.time.steps_between(times)
        missing = np.cumsum(np.where(are_near, np.maximum(counts - 1, 0), 0))
        for row in np.flatnonzero(missing > MOST_MISSING):
            raise ValueError(
                f"{where[row + 1]}: {missing[row]:,} rows are missing before "
                f"{in_iso(times[row + 1])}, the last was of {in_iso(times[row])}; at most "
                f"{MOST_MISSING:,} may be."
            )
        return self.time.without_gaps(rows, times, where, [None] * len(self.columns))

    def future(self, rows, last, horizon, name):
        """Return (horizon, num_known) float32.

        Args:
            rows: the known columns, see `window`; None without any. Rows that are dictionaries with
                the time follow the past and each other by a step.
            last: the time of the last row of the past, or None.
            horizon: how many steps.
            name: name of the rows, for errors.

        Raises:
            ValueError: beginning with `name`, if they can not be read, or a number is missing.
        """
        parts = []
        if self.known:
            fields = self._fields(rows, name, [column.name for column in self.known])
            where = _where(name, rows)
            if len(fields) != horizon:
                raise ValueError(f"{name} must have {horizon} rows; received {len(fields)}.")
            parts = [
                column.values([field[index] for field in fields], where)
                for index, column in enumerate(self.known)
            ]
            for column, values in zip(self.known, parts):
                if np.isnan(values).any():
                    row = np.isnan(values).any(axis=1).argmax()
                    raise ValueError(f"{where(row)}: {column.name!r} must be known.")
            parts = [column.scaled(values) for column, values in zip(self.known, parts)]
            self._require_following(rows, last, where)
        if self.time:
            parts.append(self.time.phases(self.time.after(last, horizon)))
        return _in_float32(np.concatenate(parts, axis=-1))

    def _require_following(self, rows, last, where):
        """Raise a ValueError if rows have times, and these do not follow the last one by steps."""
        if self.time is None or not all(isinstance(row, Mapping) for row in rows):
            return
        parts = [[row.get(name) for name in self.time.columns] for row in rows]
        if any(is_missing(part) for row in parts for part in row):
            return
        times = [self.time.read(row, where(index)) for index, row in enumerate(parts)]
        self.time.offsets(parts, where)
        self.time.require_steps(
            np.array([np.datetime64(last, "us"), *times]), lambda index: where(index - 1)
        )

    def unknown(self, rows, name, known_alone=False):
        """Return a list of `Unknown`, a category of a row that the model does not know.

        Args:
            rows, name: see `window`, or with `known_alone` see `future`.
        """
        columns = self.known if known_alone else self.columns
        if not any(column.categories for column in columns):
            return []
        names = [column.name for column in columns] if known_alone else self.names
        fields, where = self._fields(rows, name, names), _where(name, rows)
        return [
            Unknown(where(row), column, category)
            for index, column in enumerate(columns, start=len(names) - len(columns))
            if column.categories
            for row, category in enumerate(
                column.categories_of([field[index] for field in fields], where)
            )
            if category is not None and category not in column.categories
        ]

    def table(self, values, times):
        """Return (length, ...) float64: a column for each of numbers, not yet scaled, NaN where one
        is missing; then categories and cycles, which are never missing.

        Args:
            values: values of each column, from `Column.values`.
            times: times of the rows, or None.
        """
        numbers = [value for value, column in zip(values, self.columns) if not column.categories]
        hot = [value for value, column in zip(values, self.columns) if column.categories]
        return np.concatenate([*numbers, *hot, *self._phases(times)], axis=-1)

    def _table(self, fields, times, where):
        """Return the `table` of the values of every row, in the order of `names`."""
        first = len(self.names) - len(self.columns)
        columns = [*enumerate(self.columns, start=first)]
        numbers = [
            [
                column.number(field[index], row, where)
                for index, column in columns
                if not column.categories
            ]
            for row, field in enumerate(fields)
        ]
        hot = [
            column.values([field[index] for field in fields], where)
            for index, column in columns
            if column.categories
        ]
        return np.concatenate([np.array(numbers), *hot, *self._phases(times)], axis=-1)

    def _phases(self, times):
        return [self.time.phases(times)] if self.time else []

    def filled(self, table):
        """Return (..., length, num_features) features, not yet scaled, of (..., length, ...),
        `table`s or a part."""
        columns = self.numbers
        numbers, rest = table[..., : len(columns)], table[..., len(columns) :]
        flagged = [index for index, column in enumerate(columns) if column.may_be_missing]
        missing = np.isnan(numbers)
        flags = missing[..., flagged]
        if missing.any():
            steps = np.arange(numbers.shape[-2])[:, np.newaxis]
            last = np.maximum.accumulate(np.where(missing, -1, steps), axis=-2)
            filled_numbers = np.take_along_axis(numbers, np.maximum(last, 0), axis=-2)
            fill = np.array([column.fill for column in columns])
            numbers = np.where(last < 0, fill, filled_numbers)
        return np.concatenate([numbers, flags, rest], axis=-1)

    def scaled(self, features):
        """Return what the model reads of `filled` features, or of `table`s, in float32."""
        count = len(self.numbers)
        numbers = _scaled(features[..., :count], *self._scales)
        return _in_float32(np.concatenate([numbers, features[..., count:]], axis=-1))

    def unscaled(self, answers):
        """Return the values, in float64, of a model's answers (horizon, targets, ...); the targets
        are the first columns."""
        values = np.array(answers, "float64")
        for index, column in enumerate(self.columns[: values.shape[1]]):
            values[:, index] = column.unscaled(values[:, index])
        return values

    def _fields(self, rows, name, names):
        """Return the values of every row, in the order of `names`."""
        if not isinstance(rows, (tuple, list, np.ndarray)) or not len(rows):
            raise ValueError(f"{name} must be rows of {', '.join(names)}; received {shown(rows)}.")
        where = _where(name, rows)
        return [self._row(row, where, index, names) for index, row in enumerate(rows)]

    def _row(self, row, where, index, names):
        if isinstance(row, Mapping):
            try:
                return [row[name] for name in names]
            except KeyError as error:
                raise ValueError(
                    f"{where(index)} has no {error}; it has {', '.join(row)}."
                ) from error
        if not isinstance(row, (tuple, list, np.ndarray)) or len(row) != len(names):
            raise ValueError(
                f"{where(index)} must hold {', '.join(names)}, or be a dictionary of them; "
                f"received {shown(row)}."
            )
        return [*row]


class _LocatedRow(list):
    """The values of a row, and its location, which errors name."""

    def __init__(self, values, location):
        super().__init__(values)
        self.location = location


@dataclass(frozen=True)
class Unknown:
    """A category that the model does not know.

    Attributes:
        where: the name of its row.
        column: its `Column`.
        category: as `serving.categories` writes it.
    """

    where: str
    column: Column
    category: str

    def __str__(self):
        known = self.column.categories
        more = len(known) - MOST_LISTED
        listed = ", ".join(map(repr, known[:MOST_LISTED]))
        return (
            f"{self.where}: {self.column.name!r} must be one of {listed}"
            f"{f' and {more} more' if more > 0 else ''}; received {shown(self.category)}."
        )


def counted(unknown):
    """Return column -> {category: how many rows have it} of a list of `Unknown`."""
    counts = {}
    for one in unknown:
        of_column = counts.setdefault(one.column.name, {})
        of_column[one.category] = of_column.get(one.category, 0) + 1
    return counts


def _scaled(numbers, mean, deviation, log):
    """Return (g(x) - mean) / deviation with g(x) = log(1 + x) where `log` is true, else x."""
    if log is not None:
        numbers = np.where(log, np.log1p(np.maximum(numbers, 0)), numbers)
    return (numbers - mean) / deviation


def _in_float32(numbers):
    with np.errstate(over="ignore"):  # what is too large is infinite, and refused where it is read
        return numbers.astype("float32")


def _where(name, rows):
    """Return index of a row -> its name: its location, as a line of a file; a single row has the
    name of all."""

    def where(index):
        if (location := getattr(rows[index], "location", None)) is not None:
            return f"{name}, {location}"
        return name if len(rows) == 1 else f"{name}, row {index + 1}"

    return where
