"""Series of a file: rows that follow each other in time.

Their values are read by `seqkeras.serving.rows`, in training as where they are served.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.columns import read_columns
from seqkeras.data.texts import DataError
from seqkeras.data.time_steps import with_step
from seqkeras.serving.categories import category_text, is_missing
from seqkeras.serving.rows import Column, Rows
from seqkeras.serving.times import CHANGE_OF_CLOCKS, in_words
from seqkeras.serving.written_numbers import number_of

if TYPE_CHECKING:
    from seqkeras.serving.times import TimeColumn

GAPS = ("few", "refuse", "fill", "keep")
FEW = 0.01  # of the rows of a series, those that are missing
DECIMAL_OPTIONS = {".": "--decimal-point", ",": "--decimal-comma"}
WAY_OUT = "; --time-format tells another form, as %d.%m.%Y or %Y年%m月%d日"


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """Rows that follow each other.

    Attributes:
        name: name of the series; "" where a file holds one.
        where: the place of each row, as "load.csv, line 7", for errors.
        rows: a list for each row, of the values of the columns of its time, then of the others.
        times: (rows,) datetime64 of microseconds; None without a time column.
        spellings: set of the names that the file has for the series.

    Example:
        >>> from seqkeras.data import Series
        >>> series = Series("Ulm", where=["line 2", "line 3"], rows=[["1.5"], ["2"]], times=None)
        >>> len(series), series.rows
        (2, [['1.5'], ['2']])
    """

    name: str
    where: list
    rows: list
    times: np.ndarray | None
    spellings: frozenset = frozenset()

    def __len__(self) -> int:
        return len(self.rows)


def read_series(
    path: Path | str,
    columns: Sequence[str],
    time: TimeColumn | None = None,
    series_column: str | None = None,
    gaps: str = "refuse",
    step: tuple[int, str] | None = None,
) -> tuple[list[Series], TimeColumn | None, int]:
    """Return the series of a file of columns (`seqkeras.data.columns`).

    Args:
        path: path of the file.
        columns: names of the columns of values; their fields may be empty.
        time: a `seqkeras.serving.times.TimeColumn`, whose step and offset are found here; None
            where rows follow each other by the order of the lines alone.
        series_column: name of the column with the name of a row's series; None for one series.
        gaps: what is done where rows are missing. "refuse": an error. "fill": rows without values
            are put in. "few": fill if the series lacks few rows (`FEW`), else refuse. "keep": the
            rows follow each other as if none were missing.
        step: (step, unit) of the times, from `seqkeras.data.time_steps.named_step`; None: the rows
            tell it.

    Returns:
        A list of `Series`; the `TimeColumn` with its step and `has_offset`, or None; the number of
        rows that were put in.

    Raises:
        DataError: if the file can not be read, or times can not be read, do not ascend, or have
            gaps that are refused.

    Example:
        >>> import pathlib
        >>> from seqkeras.data import read_series
        >>> from seqkeras.serving.times import TimeColumn
        >>> lines = ["day,load", "2024-05-01,3", "2024-05-02,4", "2024-05-04,6"]
        >>> _ = pathlib.Path("load.csv").write_text("\\n".join(lines))
        >>> day = TimeColumn(("day",))
        >>> [series], time, num_filled = read_series("load.csv", ["load"], day, gaps="fill")
        >>> [load for _, load in series.rows], time.step_in_words, num_filled
        (['3', '4', '', '6'], '1 day', 1)
    """
    series_names = () if series_column is None else (series_column,)
    names = (*series_names, *(time.columns if time else ()), *columns)
    groups, spellings = collections.defaultdict(list), collections.defaultdict(set)
    for line, values in read_columns(path, names, may_be_empty=columns):
        name, row = (category_text(values[0]), values[1:]) if series_names else ("", values)
        groups[name].append((f"{path}, line {line}", [*row]))
        spellings[name].update(values[: len(series_names)])
    all_series = [
        Series(
            name,
            [where for where, _ in rows],
            [row for _, row in rows],
            None,
            frozenset(spellings[name]),
        )
        for name, rows in groups.items()
    ]
    if time is None:
        return all_series, None, 0
    time = dataclasses.replace(time, has_offset=_offsets(all_series, time))
    all_series = [dataclasses.replace(series, times=_times(series, time)) for series in all_series]
    if gaps == "keep":
        return all_series, time, 0
    if max(map(len, all_series)) < 2:
        raise DataError(f"{path}: a series needs two rows at least.")
    time = with_step(time, [series.times for series in all_series], step)
    most = "most rows" if step is None else "rows"
    filled = [_without_gaps(series, time, gaps, most) for series in all_series]
    return filled, time, sum(map(len, filled)) - sum(map(len, all_series))


def values_of(series: Series, index: int, column: Column) -> np.ndarray:
    """Return what a `serving.rows.Column` holds, at a place of each row: (rows, width), NaN where a
    number is missing.

    Raises:
        DataError: with the line, if a value is no number.
    """
    values = [row[index] for row in series.rows]
    try:
        return column.values(values, series.where.__getitem__)
    except ValueError as error:
        of_column = column.name, values, series.where, column.decimal
        way_out = "" if column.categories else ways_to_read(*of_column)
        raise DataError(f"{str(error).removesuffix('.')}{way_out}.") from error


def ways_to_read(
    name: str, texts: Sequence[str], where: Sequence[str], decimal: str | None = None
) -> str:
    """Return options that read a column's texts, for the error of the first that is no number; or
    where the text is that the option for this one does not read.

    Args:
        name: name of the column.
        texts: of all its rows.
        where: the file and the line of each.
        decimal: the decimal sign with which it was read.
    """
    unread = next(_unread(texts, decimal), None)
    if unread is None:
        return ""
    stray = {
        f"{way} {name}": next(_unread(texts, sign), None)
        for sign, way in DECIMAL_OPTIONS.items()
        if number_of(texts[unread], sign) is not None
    }
    if ways := [way for way, index in stray.items() if index is None]:
        return f"; {' or '.join(ways)} reads it"
    for way, index in stray.items():
        if index is not None:
            at = where[index].rpartition(", ")[2]
            return f"; {way} reads it, and not {texts[index]!r:.40} of {at}: write both in one form"
    return ""


def _unread(texts, decimal):
    """Yield the indices of texts that are neither missing nor a number."""
    for index, text in enumerate(texts):
        if not is_missing(text) and number_of(text, decimal) is None:
            yield index


def numbers_of(series: Series, names: Sequence[str], decimals: Mapping[str, str]) -> np.ndarray:
    """Return the numbers of the first columns of a series.

    Args:
        series: the `Series`.
        names: names of the columns.
        decimals: name -> decimal sign, "." or ",", of columns whose numbers people write.

    Returns:
        (rows, names) float64, NaN where a number is missing.

    Raises:
        DataError: with the line, if a value is no number.

    Example:
        >>> from seqkeras.data import Series, numbers_of
        >>> series = Series("", ["line 2", "line 3"], [["1,5", "7"], ["", "8"]], times=None)
        >>> numbers_of(series, ["load", "wind"], decimals={"load": ","}).tolist()
        [[1.5, 7.0], [nan, 8.0]]
    """
    columns = [Column(name, decimal=decimals.get(name)) for name in names]
    values = [values_of(series, index, column) for index, column in enumerate(columns)]
    return np.concatenate(values, axis=1)


def _times(series, time):
    size = len(time.columns)
    try:
        times = [
            time.read(row[:size], where, WAY_OUT) for row, where in zip(series.rows, series.where)
        ]
    except ValueError as error:
        raise DataError(str(error)) from error
    times = np.array(times)
    for row in np.flatnonzero(times[1:] <= times[:-1]):
        kind = "as" if times[row + 1] == times[row] else "after"
        location, before = series.where[row + 1], series.where[row].rpartition(", ")[2]
        way = "name the column that tells series apart with --series-column, or sort the rows"
        if _may_be_set_back(times, row):
            way = f"{CHANGE_OF_CLOCKS}; else {way}"
        raise DataError(
            f"{location}: the time {in_words(times[row + 1])} is "
            + ("the same as" if kind == "as" else "before")
            + f" that of {before}, {in_words(times[row])}; {way}."
        )
    return times


def _offsets(all_series, time):
    """Return whether the times of all series have an offset, None if either may be."""
    size = len(time.columns)
    rows = [row[:size] for series in all_series for row in series.rows]
    where = [where for series in all_series for where in series.where]
    try:
        return time.offsets(rows, where.__getitem__)
    except ValueError as error:
        raise DataError(str(error)) from error


def _may_be_set_back(times, row):
    """Return whether the row behind this one repeats an hour of a day."""
    hours = times - times.astype("M8[D]")
    return times[row] - times[row + 1] < np.timedelta64(1, "h") and (hours != hours[0]).any()


def _without_gaps(series, time, gaps, most):
    """Return a series with a row for each step."""
    counts, are_near = time.steps_between(series.times)
    if gaps == "few":
        gaps = "fill" if (counts - 1).sum() <= FEW * len(series) else "refuse"
    for row in np.flatnonzero((counts != 1) | ~are_near):
        expected, actual = time.after(series.times[row], 1)[0], series.times[row + 1]
        expectation = f"{series.where[row + 1]}: expected {in_words(expected)}"
        clocks = time.about_clocks(expected, actual)
        if not are_near[row] or counts[row] < 1:
            raise DataError(
                f"{expectation}, as {most} follow each other by {time.step_in_words}; found "
                f"{in_words(actual)}{clocks}; --gaps keep takes rows as they come."
            )
        if gaps == "refuse":
            missing = counts[row] - 1
            rows = f"{missing:,} rows are" if missing > 1 else "1 row is"
            example = ", such as trading days" if time.unit == "business day" else ""
            raise DataError(
                f"{expectation}, found {in_words(actual)}: {rows} missing{clocks}; --gaps fill "
                f"puts rows without values there, --gaps keep takes rows as they come{example}."
            )
    empty = [""] * (len(series.rows[0]) - len(time.columns))
    rows, times, where = zip(*time.without_gaps(series.rows, series.times, series.where, empty))
    return dataclasses.replace(series, where=[*where], rows=[*rows], times=np.array(times))


@dataclasses.dataclass(frozen=True, eq=False)
class Window:
    """The past of a series up to a row, and what follows.

    Attributes:
        series: the `Series`.
        table: (rows of the series, ...) as `seqkeras.serving.rows.Rows.table` gives it.
        start: the first row of the past.
        sizes: how many rows are of the past, how many follow, and how many numbers are targets.
        rows: the `seqkeras.serving.rows.Rows`.
    """

    series: Series
    table: np.ndarray
    start: int
    sizes: tuple[int, int, int]
    rows: Rows

    @property
    def past(self) -> slice:
        """The place of the past in the table."""
        return slice(self.start, self.start + self.sizes[0])

    @property
    def future(self) -> slice:
        """The place of what follows."""
        begin = self.start + self.sizes[0]
        return slice(begin, begin + self.sizes[1])

    @property
    def target(self) -> np.ndarray:
        """(horizon, targets), NaN where one is missing."""
        return self.table[self.future, : self.sizes[2]]

    @property
    def text(self) -> Any:
        """The rows, in the form that `seqkeras.serving.pipelines.Forecast` takes."""
        skipped = 0 if self.rows.time else len(self.series.rows[0]) - len(self.rows.columns)
        past = tuple(row[skipped:] for row in self.series.rows[self.past])
        if not self.rows.known:
            return past
        first = len(self.series.rows[0]) - len(self.rows.columns)
        places = [first + index for index, column in enumerate(self.rows.columns) if column.known]
        known = [[row[index] for index in places] for row in self.series.rows[self.future]]
        return {"series": past, "known": known}


class ArrayWindow(Window):
    """A window of a model that takes arrays of the columns' numbers instead of rows."""

    @property
    def text(self) -> Any:
        """The array that `serving.pipelines.Forecast` takes, and the array of the known columns."""
        past = self.table[self.past]
        if not self.rows.known:
            return past
        places = [index for index, column in enumerate(self.rows.columns) if column.known]
        return {"series": past, "known": self.table[self.future][:, places]}


class WindowArrays:
    """The inputs of many `Window`s, made when rows of them are taken.

    Args:
        windows: a list of `Window`s of the same rows and sizes.
        part: "window", "known" or "target".
        scaled: whether numbers are as the model reads and forecasts them, in float32; else they are
            the values of the file, in float64.
        lengths: numbers of rows of the past; the windows of a batch have one of these numbers,
            their last rows. None: all rows.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import Series, WindowArrays
        >>> from seqkeras.data.series import Window
        >>> from seqkeras.serving.rows import Column, Rows
        >>> rows, series = Rows((Column("load", deviation=2.0),)), Series("", [], [], None)
        >>> table = np.arange(10.0)[:, None]
        >>> windows = [Window(series, table, start, sizes=(4, 2, 1), rows=rows) for start in (0, 3)]
        >>> WindowArrays(windows, "window").shape
        (2, 4, 1)
        >>> WindowArrays(windows, "target")[np.array([1])].tolist()  # 7 and 8, by the deviation
        [[[3.5], [4.0]]]
    """

    def __init__(
        self,
        windows: Sequence[Window],
        part: str,
        scaled: bool = True,
        lengths: Sequence[int] | None = None,
    ):
        self.windows, self.part, self.scaled, self.lengths = windows, part, scaled, lengths
        self.dtype = np.dtype("float32" if scaled else "float64")
        rows, (context, horizon, targets) = windows[0].rows, windows[0].sizes
        self.places = known_places(rows, len(rows.numbers))
        widths = {
            "window": (context, rows.num_features),
            "known": (horizon, rows.num_known),
            "target": (horizon, targets),
        }
        self.shape: tuple[int | None, ...] = len(windows), *widths[part]
        if lengths is not None:
            self.shape = len(windows), None, self.shape[-1]

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        """Return (len(places), ...)."""
        windows = [self.windows[index] for index in places]
        rows, is_past = windows[0].rows, self.part == "window"
        parts = [window.past if is_past else window.future for window in windows]
        tables = np.stack([window.table[part] for window, part in zip(windows, parts)])
        features = rows.filled(tables) if is_past else tables
        if self.lengths is not None:
            features = features[:, -self.lengths[places[0] % len(self.lengths)] :]
        features = rows.scaled(features) if self.scaled else features
        if self.part == "known":
            return features[..., self.places]
        return features[..., : self.shape[-1]]


def known_places(rows: Rows, hot: int) -> list[int]:
    """Return where the numbers lie that are known of the future, in the order of
    `seqkeras.serving.rows.Rows.future`.

    Args:
        rows: the `seqkeras.serving.rows.Rows`.
        hot: where categories and cycles begin: in a table behind the numbers, in features behind
            the marks of missing ones, too.
    """
    number, places = 0, []
    for column in rows.columns:
        if column.categories:
            columns = range(hot, hot := hot + column.width)
        else:
            columns = range(number, number := number + 1)
        places += columns if column.known else ()
    return [*places, *range(hot, hot + rows.num_known - len(places))]
