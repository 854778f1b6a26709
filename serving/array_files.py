"""Arrays and rows in files, .npy and .npz of NumPy's and .csv, as inputs of a pipeline."""

import csv
import zipfile

import numpy as np

from .categories import category_of


def inputs_in(path, fields, horizon=0, series=None, each_row=False):
    """Yield (name, input) of each input in a file.

    A .npy file holds one input. A .npz file whose arrays have the names of the pipeline's fields
    holds one input of several parts; another .npz file holds one input for each array.
    A .csv file holds rows below a header, the last `horizon` of an input known covariates: one
    input, or one for each value of the column `series`, if there is such a column.

    Args:
        path: path of the file.
        fields: the names of an input's parts.
        horizon: how many rows of an input in a .csv file are of the future.
        series: the name of that column.
        each_row: whether each row of a .csv file is an input.

    Raises:
        OSError: if it can not be opened.
        ValueError: if it is not a file of numbers that NumPy saved.
    """
    if path.endswith(".csv"):
        table = _rows_in(path)
        if each_row:
            yield from ((f", row {number}", row) for number, row in enumerate(table, start=1))
            return
        for part, rows in _series_in(table, series):
            parts = (rows[: len(rows) - horizon], rows[len(rows) - horizon :])
            yield part, dict(zip(fields, parts)) if horizon else rows
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


def _rows_in(path):
    """Return the rows of a .csv file, a tuple of dictionaries."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = tuple(csv.DictReader(file, strict=True, restkey="", restval=""))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: must be CSV in UTF-8: {error}.") from error
    return rows
