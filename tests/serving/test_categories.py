"""A cell has one category, whoever wrote it: Python, NumPy, pandas, JSON or a CSV file."""

import csv
import datetime
import decimal
import io
import json
import math

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as values

from seqkeras.serving.categories import category_of, category_text
from tests.serving.javascript.package import PACKAGE

CASES = json.loads((PACKAGE / "test" / "categories.json").read_text(encoding="utf-8"))
DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(("cell", "category"), CASES, ids=json.dumps)
def test_the_table_of_cases_holds(cell, category):
    assert category_of(cell) == category
    if category is not None:
        assert category_of(category) == category


@pytest.mark.parametrize(
    ("cell", "category"),
    [
        (np.True_, "true"),
        (np.int8(1), "1"),
        (np.float32(0.1), "0.1"),
        (np.float16(-2), "-2"),
        (np.array(3.0), "3"),
        (np.str_("1.0"), "1"),
        (decimal.Decimal("1E+2"), "100"),
        (math.inf, "inf"),
        (DAY, "2024-02-29"),
        (datetime.datetime(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 23, tzinfo=datetime.UTC), "2024-02-29T23:00:00+00:00"),
        (pandas.Timestamp("2024-02-29"), "2024-02-29"),
        (np.datetime64("2024-02-29"), "2024-02-29"),
        (np.datetime64("2024-02-29T23"), "2024-02-29T23:00:00"),
        (np.datetime64("2024-02-29T23:00:00.5", "ns"), "2024-02-29T23:00:00.5"),
        (math.nan, None),
        (np.float32("nan"), None),
        (decimal.Decimal("NaN"), None),
        (np.datetime64("NaT"), None),
        (pandas.NaT, None),
        (pandas.NA, None),
    ],
    ids=repr,
)
def test_cells_of_python_numpy_and_pandas_have_their_category(cell, category):
    assert category_of(cell) == category


@pytest.mark.parametrize("cell", [[1], {}, b"x", 1j, 10**5000, np.array([1, 2])], ids=type)
def test_what_is_no_category_is_refused(cell):
    with pytest.raises(ValueError, match="must be a text, a number, true or false, or a date; rec"):
        category_of(cell)


cells = (
    values.booleans()
    | values.integers(-(2**53), 2**53)
    | values.floats(allow_nan=False, allow_infinity=False)
    | values.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1))
)


@given(values.lists(cells, min_size=1, max_size=5))
def test_json_and_csv_files_say_what_python_holds(column):
    expected = [category_text(cell) for cell in column]
    of_json = json.loads(json.dumps(column, default=str))
    assert [category_text(cell) for cell in of_json] == expected
    file = io.StringIO()
    csv.writer(file).writerows([cell] for cell in column)
    file.seek(0)
    assert [category_text(cell) for [cell] in csv.reader(file)] == expected


@given(
    values.lists(values.booleans(), min_size=2, max_size=5)
    | values.lists(values.integers(-(2**53), 2**53), min_size=2, max_size=5)
    | values.lists(values.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5)
    | values.lists(values.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1)), min_size=2)
)
def test_pandas_keeps_the_categories_of_a_column_with_a_gap(column):
    """pandas makes floats of integers, objects of booleans, and times of dates."""
    expected = [category_text(cell) for cell in column]
    frame = pandas.DataFrame({"cell": [*column, None]})
    if isinstance(column[0], datetime.date):
        frame["cell"] = pandas.to_datetime(frame["cell"])
    assert [category_of(cell) for cell in frame["cell"]] == [*expected, None]
    file = io.StringIO(frame.to_csv(index=False))
    again = pandas.read_csv(file, skip_blank_lines=False)
    assert [category_of(cell) for cell in again["cell"]] == [*expected, None]
