"""Arrays and rows in files, .npy and .npz of NumPy's and .csv, as inputs of a pipeline."""

import codecs
import csv
import io
import zipfile
from pathlib import Path

import numpy as np

from .categories import category_of, is_missing
from .checks import shown
from .parsing import about_separators, utf8_of


class FileRow(dict):
    """A row of a file by column, and its location, the last line of it, which errors name."""

    def __init__(self, values, line):
        super().__init__(values)
        self.location = f"line {line}"


def inputs_in(path, fields, rows=None, horizon=0, targets=(), each_row=False):
    """Yield (name, input) of each input in a file.

    A .npy file holds one input. A .npz file whose arrays have the names of the pipeline's fields
    holds one input of several parts; another .npz file holds one input for each array.
    A .csv file holds rows below a header, the last `horizon` of an input known covariates: one
    input, or one for each value of the column that tells series apart, if there is such a column.

    Args:
        path: path of the file.
        fields: the names of an input's parts.
        rows: the `serving.rows.Rows` that read a .csv file, or None.
        horizon: how many rows of an input in a .csv file are of the future.
        targets: columns that are empty in these rows, for the model forecasts them.
        each_row: whether each row of a .csv file is an input.

    Raises:
        OSError: if it can not be opened.
        ValueError: if it is not a file of numbers that NumPy saved, or not CSV; or if rows of the
            future hold values of targets.
    """
    if path.endswith(".csv"):
        table = _rows_in(path, rows)
        if each_row:
            yield from ((f", row {number}", row) for number, row in enumerate(table, start=1))
            return
        all_series = [*_series_in(table, rows and rows.series)]
        if horizon:
            _require_future(path, all_series, horizon, targets, rows and rows.time)
        for part, given in all_series:
            parts = (given[:-horizon], given[-horizon:]) if horizon else ()
            yield part, dict(zip(fields, parts)) if horizon else given
        return
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            yield "", loaded
            return
        with loaded:
            if set(loaded.files) == set(fields):
                yield "", {name: loaded[name] for name in fields}
                return
            for name in loaded.files:
                yield f", {name}", loaded[name]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path}: must be of numbers that NumPy saved: {reason}.") from error


def _series_in(rows, column):
    """Yield (name, rows) of each series, in the order in which they begin."""
    if not rows or column not in rows[0]:
        yield "", rows
        return
    series = {}
    for row in rows:
        series.setdefault(category_of(row[column]), []).append(row)
    for name, series_rows in series.items():
        yield f", {column} {'' if name is None else name}", tuple(series_rows)


def _require_future(path, all_series, horizon, targets, time):
    """Raise a ValueError if the last rows of a series hold values of targets, so that they are of
    the past: the answer to them would be no forecast of what follows the file."""
    refusals = []
    for part, rows in all_series:
        held = [
            (row, name)
            for row in rows[-horizon:]
            for name in targets
            if not is_missing(row.get(name))
        ]
        if held:
            names = " and ".join(map(repr, dict.fromkeys(name for _, name in held)))
            first, last = (_line_of(row, time) for row in (held[0][0], held[-1][0]))
            lines = f"in {first}" if first == last else f"from {first} to {last}"
            refusals.append((part, names, lines))
    if refusals:
        (part, names, lines), *others = refusals
        more = f", as do those of {len(others)} more series" if others else ""
        raise ValueError(
            f"{path}{part}: the last {horizon} rows are read as the steps to forecast, with known "
            f"columns filled and targets empty; they hold values of {names} {lines}{more}; append "
            f"the rows of the steps to forecast, or empty {names} in these rows to forecast steps "
            "that are past."
        )


def _line_of(row, time):
    """Return the line of a row, and its time if it has one."""
    moment = " ".join(str(row.get(name) or "") for name in (time.columns if time else ()))
    return f"{row.location}{f' ({moment})' if moment.strip() else ''}"


def _rows_in(path, rows):
    """Return the rows of a .csv file, a tuple of `FileRow`s."""
    text = utf8_of(Path(path).read_bytes().removeprefix(codecs.BOM_UTF8), path)
    try:
        reader = csv.DictReader(io.StringIO(text, ""), strict=True, restkey="", restval="")
        _require_commas(path, reader.fieldnames or (), rows)
        return tuple(FileRow(row, reader.line_num) for row in reader)
    except csv.Error as error:
        raise ValueError(f"{path}: must be CSV: {error}.") from error


def _require_commas(path, header, rows):
    """Raise a ValueError for a header whose columns are divided by another sign than commas."""
    if (
        rows is not None
        and set(header).isdisjoint(rows.names)
        and (about := about_separators(header))
    ):
        raise ValueError(
            f"{path}: {about}; received the header {shown(header[0])}; save the file with commas."
        )
