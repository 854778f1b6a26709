"""Times of rows, by the table that JavaScript's test reads too, and by pandas."""

import calendar
import dataclasses
import datetime
import json
import math
import re
import zoneinfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqkeras.serving.times import FIXED, UNITS, TimeColumn, in_iso
from tests.conftest import CHECKOUT

TABLE = json.loads((CHECKOUT / "serving/javascript/test/times.json").read_text(encoding="utf-8"))
TIME = TimeColumn(("t",))


def column_of(case):
    column = TimeColumn(tuple(case.get("columns", ["t"])), case.get("format"))
    return column, case["values"] if "values" in case else [case["value"]]


def step_of(case):
    return TimeColumn(("t",), None, case["step"], case["unit"], case.get("day"))


def moments(texts):
    return np.array(texts, "M8[us]")


@pytest.mark.parametrize("case", TABLE["read"], ids=str)
def test_a_time_is_read_as_it_is_written(case):
    column, values = column_of(case)
    assert in_iso(column.read(values, "row")) == case["time"]


@pytest.mark.parametrize("case", TABLE["refused"], ids=str)
def test_what_is_no_time_is_refused_with_its_row(case):
    column, values = column_of(case)
    name = re.escape(repr(" ".join(column.columns)))
    with pytest.raises(ValueError, match=rf"^row 3: {name} must be a time .*; received .*\.$"):
        column.read(values, "row 3")


@pytest.mark.parametrize("case", TABLE["no_such_day"], ids=str)
def test_a_day_that_its_month_does_not_have_is_said_to_be_none(case):
    column, values = column_of(case)
    with pytest.raises(ValueError, match=r"^row 3: .*; received .*: there is no such day\.$"):
        column.read(values, "row 3", "; --time-format reads it")


@given(st.dates(), st.integers(1, 99), st.sampled_from([None, "%d.%m.%Y", "%m/%d/%Y", "%Y%m%d"]))
def test_there_is_no_such_day_is_said_of_such_days_alone(date, day, format):
    written = (format or "%Y-%m-%d").replace("%Y", f"{date.year:04}")
    text = written.replace("%m", f"{date.month:02}").replace("%d", f"{day:02}")
    try:
        TimeColumn(("t",), format).read([text], "row")
        is_read = True
    except ValueError as error:
        is_read = False
        is_beyond = calendar.monthrange(date.year, date.month)[1] < day <= 31
        assert ("there is no such day" in str(error)) == is_beyond
    assert is_read == (day <= calendar.monthrange(date.year, date.month)[1])


@pytest.mark.parametrize("value", [None, np.nan, pd.NaT, pd.NA, np.datetime64("NaT"), np.True_])
def test_a_missing_time_is_refused(value):
    with pytest.raises(ValueError, match="^row: 't' must be a time in ISO 8601, as 2024-12-31 23:"):
        TIME.read([value], "row")


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
HOUR_TWICE = [datetime.datetime(2024, 10, 27, 2, fold=fold, tzinfo=BERLIN) for fold in (0, 1)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime.date(2024, 2, 29), "2024-02-29T00:00:00"),
        (datetime.datetime(2024, 2, 29, 23, 0, 0, 100_000), "2024-02-29T23:00:00.100000"),
        (HOUR_TWICE[0], "2024-10-27T00:00:00"),
        (HOUR_TWICE[1], "2024-10-27T01:00:00"),
        (np.datetime64("2024-02-29"), "2024-02-29T00:00:00"),
        (np.datetime64("2024-02-29T23:00:00.123456789"), "2024-02-29T23:00:00.123456"),
        (pd.Timestamp("2024-02-29 23:00:00.1"), "2024-02-29T23:00:00.100000"),
        (pd.Timestamp("2024-02-29 23:00", tz="Asia/Tokyo"), "2024-02-29T14:00:00"),
        (np.int64(1709247600), "2024-02-29T23:00:00"),
        (np.float64(1709247600.5), "2024-02-29T23:00:00.500000"),
        (np.str_("2024-02-29"), "2024-02-29T00:00:00"),
    ],
    ids=str,
)
@pytest.mark.parametrize("format", [None, "%d.%m.%Y"])
def test_a_value_that_is_a_time_needs_no_format(value, expected, format):
    if isinstance(value, str | np.number):
        format = None
    assert in_iso(TimeColumn(("t",), format).read([value], "row")) == expected


@given(
    st.datetimes(datetime.datetime(1680, 1, 1), datetime.datetime(2255, 1, 1)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"]),
)
def test_texts_that_pandas_writes_are_read_as_its_timestamps(moment, zone):
    for written in (pd.Timestamp(moment), pd.Timestamp(moment, tz="UTC").tz_convert(zone)):
        expected = written if written.tz is None else written.tz_convert("UTC").tz_localize(None)
        for value in (str(written), written.isoformat(), written):
            assert TIME.read([value], "row") == np.datetime64(expected, "us")


@given(st.integers(10**8, 10**10 - 1))
def test_numbers_are_those_of_pandas_or_are_refused_as_dates_with_hours(seconds):
    for unit, size in (("s", 1), ("ms", 10**3), ("us", 10**6)):
        expected = np.datetime64(pd.Timestamp(seconds * size, unit=unit), "us")
        for value in (seconds * size, str(seconds * size), float(seconds * size)):
            assert TimeColumn(("t",), unit).read([value], "row") == expected
            try:
                assert TIME.read([value], "row") == expected
            except ValueError:  # 2024123123 is the last hour of 2024, or a second of 2034
                pd.to_datetime(str(int(value))[:10], format="%Y%m%d%H")


@pytest.mark.parametrize("case", TABLE["after"], ids=lambda case: case["freq"])
def test_the_next_times_are_those_of_pandas(case):
    expected = pd.date_range(case["start"], periods=97, freq=case["freq"]).values
    expected = expected.astype("M8[us]")
    column = step_of(case)
    assert [*column.problems()] == []
    assert moments(case["times"]).tolist() == expected[:30].tolist()
    np.testing.assert_array_equal(column.after(expected[0], 96), expected[1:])
    np.testing.assert_array_equal(column.after(expected[:50], 3)[:, 2], expected[3:53])
    counts, are_near = column.steps_between(expected)
    assert (counts == 1).all() and are_near.all()
    counts, are_near = column.steps_between(expected[::7])
    assert (counts == 7).all() and are_near.all()


@pytest.mark.parametrize("case", TABLE["phases"], ids=lambda case: case["time"])
def test_phases_are_sine_and_cosine_of_the_part_of_a_cycle(case):
    """By datetime, as the table has them for JavaScript."""
    moment = datetime.datetime.fromisoformat(case["time"])
    begin = datetime.datetime(moment.year, 1, 1)
    year = (moment - begin) / (begin.replace(year=moment.year + 1) - begin)
    day = (moment - datetime.datetime(moment.year, moment.month, moment.day)).total_seconds()
    turns = day / 86_400, (moment.weekday() + day / 86_400) / 7, year
    angles = [2 * math.pi * turn for turn in turns]
    expected = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
    np.testing.assert_allclose(case["phases"], expected, atol=1e-9)
    column = TimeColumn(("t",), cycles=("day", "week", "year"))
    np.testing.assert_allclose(column.phases(moments([case["time"]]))[0], expected, atol=1e-6)


def name_of(row):
    return f"row {row + 1}"


def rows_of(case):
    return [value if isinstance(value, list) else [value] for value in case["values"]]


@pytest.mark.parametrize("case", TABLE["offsets"], ids=str)
def test_a_time_of_the_kind_of_training_is_read_and_one_of_the_other_is_refused(case):
    column = TimeColumn(tuple(case.get("columns", ["t"])), case.get("format"))
    for has_offset in (None, True, False):
        trained, expected = dataclasses.replace(column, has_offset=has_offset), case["has_offset"]
        if None not in (has_offset, expected) and has_offset != expected:
            with pytest.raises(ValueError, match=r"^row \d: .* a zone offset, as in training; "):
                trained.offsets(rows_of(case), name_of)
            continue
        found = trained.offsets(rows_of(case), name_of)
        assert found is (has_offset if expected is None else expected)


@pytest.mark.parametrize("case", TABLE["mixed"], ids=str)
def test_times_with_and_without_an_offset_never_stand_beside_each_other(case):
    column = TimeColumn(("t",), has_offset=case.get("has_offset"))
    with pytest.raises(ValueError, match=f"^{re.escape(case['refusal'])}[.]$"):
        column.offsets(rows_of(case), name_of)


@pytest.mark.parametrize(
    ("value", "has_offset"),
    [
        (datetime.datetime(2024, 2, 29), False),
        (datetime.date(2024, 2, 29), False),
        (HOUR_TWICE[0], True),
        (pd.Timestamp("2024-02-29", tz="UTC"), True),
        (np.datetime64("2024-02-29"), None),
        (np.int64(1709247600), None),
    ],
    ids=str,
)
def test_a_value_of_python_has_an_offset_where_it_has_a_zone(value, has_offset):
    assert TIME.offsets([[value]], name_of) is has_offset
    assert TimeColumn(("t",), "%d.%m.%Y").offsets([[value]], name_of) is has_offset


@pytest.mark.parametrize("case", TABLE["followed"], ids=lambda case: case["unit"])
def test_a_time_follows_near_its_step(case):
    counts, are_near = step_of(case).steps_between(moments(case["times"]))
    assert (counts.tolist(), are_near.tolist()) == (case["counts"], case["near"])


@pytest.mark.parametrize("format", [None, "%d.%m.%Y %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f%z", "us"])
@pytest.mark.parametrize("text", ["2024-02-29T23:00:00.25", "1969-12-31T23:59:59.9"])
def test_a_written_time_is_read_as_it_was(text, format):
    column, time = TimeColumn(("t",), format), np.datetime64(text, "us")
    assert column.read(column.written(time), "row") == time


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ((1, "second"), "1 second"),
        ((900, "second"), "15 minutes"),
        ((7200, "second"), "2 hours"),
        ((604_800, "second"), "7 days"),
        ((100_000, "microsecond"), "100 milliseconds"),
        ((3, "month"), "3 months"),
        ((1, "business day"), "1 business day"),
    ],
)
def test_a_step_in_words(step, words):
    assert TimeColumn(("t",), None, *step).step_in_words == words


def test_steps_that_are_none_are_told():
    assert [*TimeColumn(("t",), None, 0, "week", 32).problems()] == [
        f"the step must be of {' or '.join(UNITS)}, at least 1; received 0 week",
        "the day must be 1 to 31, of steps of months; received 32",
    ]
    assert set(FIXED) < set(UNITS)


def test_a_row_of_the_hour_that_comes_twice_is_told_its_way_out():
    times = moments(["2024-10-27T01:00", "2024-10-27T02:00", "2024-10-27T02:00"])
    message = (
        "row 2: expected the time 2024-10-27T03:00:00, 1 hour after the row before; received "
        "2024-10-27T02:00:00; where clocks change, times need their zone offset, as "
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        TimeColumn(("t",), step=3600).require_steps(times, "row {}".format)
