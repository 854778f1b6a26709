"""Series of a file: their rows, steps, gaps, and windows that serving reads alike."""

import re

import numpy as np
import pandas as pd
import pytest

from seqkeras.data.series import Window, WindowArrays, read_series, values_of
from seqkeras.data.texts import DataError
from seqkeras.data.time_steps import named_step
from seqkeras.serving.rows import Column, Rows
from seqkeras.serving.times import TimeColumn, in_iso
from tests.conftest import others_long

TIME = TimeColumn(("time",))
HOURS = (
    "time,load\n2024-01-01 00:00,1\n2024-01-01 01:00,NA\n2024-01-01 04:00,4\n2024-01-01 05:00,\n"
)


def write(folder, content):
    path = folder / "load.csv"
    path.write_text(content)
    return path


def read(folder, content, *arguments, **options):
    return read_series(write(folder, content), ("load",), *arguments, **options)


def test_rows_without_a_time_follow_each_other(tmp_path):
    [series], time, filled = read(tmp_path, "load\n1\n3\nNA\n")
    assert (time, filled, series.rows) == (None, 0, [["1"], ["3"], ["NA"]])
    np.testing.assert_array_equal(values_of(series, 0, Column("load")), [[1], [3], [np.nan]])


def test_gaps_are_filled_with_rows_without_values(tmp_path):
    [series], time, filled = read(tmp_path, HOURS, TIME, gaps="fill")
    assert (time.step, time.unit, filled) == (3600, "second", 2)
    assert [row[1] for row in series.rows] == ["1", "NA", "", "", "4", ""]
    hours = [f"2024-01-01T0{hour}:00:00" for hour in range(6)]
    assert [in_iso(each) for each in series.times] == hours
    assert [in_iso(time.read(row[:1], "row")) for row in series.rows] == hours


def test_gaps_may_be_kept(tmp_path):
    [series], _, filled = read(tmp_path, HOURS, TIME, gaps="keep")
    assert len(series) == 4 and filled == 0


def test_months_are_steps_of_one_month(tmp_path):
    lines = [f"2023-{month:02},{month}" for month in range(10, 13)] + ["2024-02,2"]
    time = TimeColumn(("time",), "%Y-%m")
    [series], time, filled = read(tmp_path, "\n".join(["time,load", *lines]), time, gaps="fill")
    assert (time.step, time.unit, filled) == (1, "month", 1)
    assert series.rows[3] == ["2024-01", ""]


def test_filled_rows_have_an_offset_where_others_have_one(tmp_path):
    content = re.sub(r"(:\d\d),", r"\1+02:00,", HOURS)
    [series], time, filled = read(tmp_path, content, TIME, gaps="fill")
    assert time.has_offset is True and filled == 2
    assert time.offsets([row[:1] for row in series.rows], str) is True
    times = [time.read(row[:1], "row") for row in series.rows]
    np.testing.assert_array_equal(times, series.times)


def test_a_time_of_several_columns_is_filled_too(tmp_path):
    content = "year,month,day,load\n2024,2,27,1\n2024,2,28,1\n2024,3,1,2\n2024,3,2,3\n"
    time = TimeColumn(("year", "month", "day"))
    [series], time, filled = read(tmp_path, content, time, gaps="fill")
    assert (time.step, filled, series.rows[2]) == (86400, 1, ["2024", "2", "29", ""])


def test_a_column_tells_series_apart(tmp_path):
    content = "time,load,place\n2024-01-01,1,b\n2024-01-01,2,a\n2024-01-02,3,a\n2024-01-02,4,b\n"
    found, _, _ = read(tmp_path, content, TIME, "place")
    assert {each.name: [row[-1] for row in each.rows] for each in found} == {
        "b": ["1", "4"],
        "a": ["2", "3"],
    }


def of_times(times):
    return "time,load\n" + "".join(f"{time},{place}\n" for place, time in enumerate(times))


def step_of(folder, times, gaps="refuse", step=None):
    """The step, its unit and its day that are told of times, and how many rows are filled in."""
    _, time, filled = read(folder, of_times(times), TIME, gaps=gaps, step=step)
    return time.step, time.unit, time.day, filled


@pytest.mark.parametrize(
    ("freq", "start", "expected"),
    [
        ("ME", "2004-01-31", (1, "month", 31)),
        ("BME", "2004-01-31", (1, "month", None)),
        ("MS", "2004-01-01", (1, "month", 1)),
        ("QE-NOV", "1964-02-29", (3, "month", 31)),
        ("YE", "1964-12-31", (12, "month", 31)),
        ("365D", "1964-12-31", (365 * 86_400, "second", None)),
        ("28D", "2024-01-01", (28 * 86_400, "second", None)),
        ("W-FRI", "2024-01-05", (7 * 86_400, "second", None)),
        ("B", "2024-01-05", (1, "business day", None)),
        ("D", "2024-01-05", (86_400, "second", None)),
        ("h", "2024-02-28", (3600, "second", None)),
        ("100ms", "2024-02-28", (100, "millisecond", None)),
        ("16667us", "2024-02-28", (16_667, "microsecond", None)),
    ],
)
@pytest.mark.parametrize("number", others_long(["iso", "epoch"]))
def test_the_step_of_a_series_is_that_of_its_times(freq, start, expected, number, tmp_path):
    times = pd.date_range(start, periods=40, freq=freq)
    texts = times if number == "iso" else times.values.astype("M8[us]").astype("int64")
    if number == "epoch" and times[0].year < 1974:
        pytest.skip("numbers before 1973 need --time-format us")
    assert step_of(tmp_path, texts) == (*expected, 0)


def test_steps_that_spread_are_rounded(tmp_path):
    draw = np.random.default_rng(0)
    for freq, size, expected in (
        ("1s", 20_000, (1, "second")),
        ("100ms", 4000, (100, "millisecond")),
        ("5min", 8_000_000, (300, "second")),
    ):
        times = pd.date_range("2024-01-01", periods=200, freq=freq)
        times = times + pd.to_timedelta(draw.integers(-size, size, 200), unit="us")
        assert step_of(tmp_path, times) == (*expected, None, 0)


def test_days_of_a_zone_are_days_where_clocks_change(tmp_path):
    days = pd.date_range("2024-01-01", periods=400, freq="D", tz="Europe/Berlin")
    filled = step_of(tmp_path, [*days[:50], *days[53:]], gaps="fill")
    assert filled == (86_400, "second", None, 3)
    hours = pd.date_range("2024-10-26", periods=99, freq="h", tz="Europe/Berlin")
    assert step_of(tmp_path, hours) == (3600, "second", None, 0)


def test_a_business_day_without_a_row_is_told(tmp_path):
    days = pd.bdate_range("2024-12-16", "2025-01-10").drop(["2024-12-25", "2025-01-01"])
    message = (
        "line 9: expected 2024-12-25, found 2024-12-26: 1 row is missing; --gaps fill puts rows "
        "without values there, --gaps keep takes rows as they come, such as trading days."
    )
    with pytest.raises(DataError, match=re.escape(message)):
        step_of(tmp_path, days)
    assert step_of(tmp_path, days, gaps="fill") == (1, "business day", None, 2)
    assert step_of(tmp_path, days, "fill", named_step("day")) == (86_400, "second", None, 8)


def test_filled_month_ends_are_month_ends(tmp_path):
    ends = pd.date_range("2023-12-31", periods=9, freq="ME")
    [series], _, filled = read(tmp_path, of_times(ends.delete([2, 3])), TIME, gaps="fill")
    assert filled == 2
    np.testing.assert_array_equal(series.times, ends.values.astype("M8[us]"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("month", (1, "month")),
        ("2 quarters", (6, "month")),
        ("15 minutes", (900, "second")),
        ("business-day", (1, "business day")),
        ("0 days", None),
        ("fortnight", None),
        ("1.5 hours", None),
    ],
)
def test_a_step_has_a_name(text, expected):
    assert named_step(text) == expected


def test_a_step_that_is_given_holds_whatever_the_rows_tell(tmp_path):
    days = ["2024-01-03", "2024-02-01", "2024-03-04", "2024-04-02"]
    assert step_of(tmp_path, days, step=named_step("month")) == (1, "month", None, 0)
    message = "line 3: expected 2024-02-03, as rows follow each other by 1 month; found 2024-01-04"
    with pytest.raises(DataError, match=re.escape(message)):
        step_of(tmp_path, ["2024-01-03", "2024-01-04"], step=named_step("month"))


CLOCKS = "where clocks change, times need their zone "


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("2024-01-01", "load.csv: a series needs two rows at least."),
        ("2012/01/01", "line 2: 'time' must be a time in ISO 8601, as 2024-12-31 2"),
        (
            "2024-10-27 01:45,2024-10-27 02:00,2024-10-27 02:00",
            "line 4: the time 2024-10-27 02:00 is the same as that of line 3, 2024-10-27 02:00; "
            f"{CLOCKS}offset, as 2024-10-27 02:00+01:00; else ",
        ),
        (
            "2024-10-27 02:30,2024-10-27 02:45,2024-10-27 02:00",
            "line 4: the time 2024-10-27 02:00 is before that of line 3, 2024-10-27 02:45; where ",
        ),
        (
            "2024-03-31 00:00,2024-03-31 01:00,2024-03-31 03:00",
            f"found 2024-03-31 03:00: 1 row is missing; {CLOCKS}",
        ),
        (
            "2024-01-01 00,2024-01-01 01,2024-01-01 04,2024-01-01 05",
            "found 2024-01-01 04:00: 2",
        ),
        ("2024-01-01,2024-01-02,2024-01-02", "line 4: the time 2024-01-02 is the same as that of"),
        ("2024-01-03,2024-01-02", "load.csv, line 3: the time 2024-01-02 is bef"),
        (
            "2024-01-01,2024-01-02,2024-01-03,2024-01-03T07:00",
            "line 5: expected 2024-01-04, as most rows follow each other by 1 day; found "
            "2024-01-03 07:00; --gaps keep takes rows as they come.",
        ),
    ],
)
def test_times_that_are_no_series_get_one_line(times, message, tmp_path):
    with pytest.raises(DataError, match=re.escape(message)):
        read(tmp_path, of_times(times.split(",")), TIME)


def test_a_value_that_is_no_number_is_named_by_its_line(tmp_path):
    [series], _, _ = read(tmp_path, HOURS.replace(",4\n", ",4 kW\n"), TIME, gaps="fill")
    message = "load.csv, line 4: 'load' must be a number; received '4 kW'."
    with pytest.raises(DataError, match=re.escape(message)):
        values_of(series, 1, Column("load"))


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ('"1,250"', "--decimal-point load or --decimal-comma load reads it."),
        ("204.93亿", "--decimal-point load reads it."),
        ("1.250，5", "--decimal-comma load reads it."),
    ],
)
def test_a_number_that_people_write_names_the_option_that_reads_it(text, way_out, tmp_path):
    [series], _, _ = read(tmp_path, HOURS.replace(",4\n", f",{text}\n"), TIME, gaps="fill")
    message = rf"load.csv, line 4: 'load' must be a number; received '.*'; {way_out}$"
    with pytest.raises(DataError, match=message):
        values_of(series, 1, Column("load"))


@pytest.mark.parametrize("decimal, line, other", [(None, 4, 2), (",", 2, 4)])
def test_two_forms_of_numbers_in_a_column_are_told_with_their_lines(decimal, line, other, tmp_path):
    hours = "time,load\n2024-01-01 00:00,78.0\n2024-01-01 01:00,\n2024-01-01 02:00,"
    [series], _, _ = read(tmp_path, f'{hours}"1.234,50"\n', TIME)
    texts = {2: "78.0", 4: "1.234,50"}
    way = {None: "comma", ",": "point"}[decimal]
    message = (
        f"load.csv, line {line}: 'load' must be a number; received '{texts[line]}'; --decimal-"
        f"{way} load reads it, and not '{texts[other]}' of line {other}: write both in one form."
    )
    with pytest.raises(DataError, match=f"{re.escape(message)}$"):
        values_of(series, 1, Column("load", decimal=decimal))


def test_windows_are_what_serving_makes_of_their_rows(tmp_path):
    """Categories, cycles and what is known among them."""
    draw = np.random.default_rng(0)
    lines = [
        f"2024-01-{day:02},{'' if draw.random() < 0.4 else day},{draw.choice(['x', 'y'])},{day % 5}"
        for day in range(1, 24)
    ]
    content = "\n".join(["time,load,kind,plan", *lines])
    columns = (
        Column("load", fill=11.0, may_be_missing=True, mean=7.0, deviation=3.0),
        Column("kind", ("x", "y"), known=True),
        Column("plan", known=True, mean=2.0, deviation=0.5, log=True),
    )
    path, names = write(tmp_path, content), ("load", "kind", "plan")
    [series], time, _ = read_series(path, names, TimeColumn(("time",), cycles=("week",)))
    rows = Rows(columns, time)
    values = [values_of(series, place, column) for place, column in enumerate(columns, 1)]
    table = rows.table(values, series.times)
    windows = [Window(series, table, start, (7, 3, 1), rows) for start in range(14)]
    window, known, target = (
        WindowArrays(windows, part)[range(14)] for part in ("window", "known", "target")
    )
    assert window.shape == (14, 7, rows.num_features)
    for place, each in enumerate(windows):
        features, last = rows.window(each.text["series"], "series")
        np.testing.assert_array_equal(window[place], features)
        np.testing.assert_array_equal(known[place], rows.future(each.text["known"], last, 3, "k"))
        loads = [float(row[1]) if row[1] else np.nan for row in series.rows[place + 7 : place + 10]]
        np.testing.assert_array_equal(target[place, :, 0], np.float32((np.array(loads) - 7) / 3))
        plans = [float(row[3]) for row in series.rows[place : place + 7]]
        expected = (np.log1p(plans) - 2) / 0.5
        np.testing.assert_allclose(window[place, :, 1], expected, rtol=1e-6)


@pytest.mark.parametrize("lost", [1, 5, 7])
def test_gaps_of_few_rows_are_filled(tmp_path, lost):
    times = (np.datetime64("2024-01-01T00") + np.arange(600)).tolist()
    content = of_times([*times[:500], *times[500 + lost :]])
    if lost <= 5:
        assert read(tmp_path, content, TIME, gaps="few")[2] == lost
        return
    with pytest.raises(DataError, match="7 rows are missing; --gaps fill"):
        read(tmp_path, content, TIME, gaps="few")
