"""Rows of a table become the numbers that a forecaster reads."""

import dataclasses
import datetime
import json
import math
import random
import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data import read_series
from seqkeras.data.time_steps import named_step
from seqkeras.serving import BundleError
from seqkeras.serving.rows import Column, Rows, counted
from seqkeras.serving.times import TimeColumn
from tests.serving.pipelines.toys import FORECAST as W
from tests.serving.pipelines.toys import forecaster as graph
from tests.serving.pipelines.toys import frames_graph, load, write_bundle

COLUMNS = (Column("load", fill=5.0, may_be_missing=True), Column("wind", ("N", "S"), known=True))
COUNTING = np.float32([[0, 1], [0, 1]])  # 0, and how many frames there are
HOURS = TimeColumn(("time",), step=2, unit="second", cycles=("day", "week"))
NUMBER, CATEGORY = {"name": "load", "may_be_missing": True, "fill": 2.0}, {"name": "wind"}


def test_a_missing_number_is_the_last_one_before_it_and_the_model_is_told():
    rows = (("NA", "S"), (3, "N"), (None, ""), [math.nan, "unheard of"], {"load": "7", "wind": "S"})
    window, last = Rows(COLUMNS).window(rows, "series")
    assert last is None
    np.testing.assert_array_equal(
        window, [[5, 1, 0, 1], [3, 0, 1, 0], [3, 1, 0, 0], [3, 1, 0, 0], [7, 0, 0, 1]]
    )
    assert window.dtype == np.float32 and Rows(COLUMNS).num_features == 4


def test_times_are_of_the_kind_of_training():
    time = dataclasses.replace(HOURS, step=3600, has_offset=False)
    rows, hours = Rows((Column("load"),), time), (("2024-01-31 05:00", 1), ("2024-01-31 06:00", 2))
    window, last = rows.window(hours, "series")
    assert window.shape == (2, 5) and last == np.datetime64("2024-01-31T06:00")
    given = [(f"{moment}+08:00", load) for moment, load in hours]
    with pytest.raises(ValueError, match="^series, row 1: 'time' must be a time without a zone of"):
        rows.window(given, "series")


def test_unknown_categories_are_counted_and_missing_ones_are_none():
    rows = Rows((*COLUMNS, Column("zone", ("1",))))
    given = [(1, "E", 1), (1, None, 2), (1, "E", math.nan), (1, "NA", "2.0"), (1, "S", "x")]
    unknown = rows.unknown(given, "series")
    assert counted(unknown) == {"wind": {"E": 2}, "zone": {"2": 2, "x": 1}}
    assert str(unknown[0]) == "series, row 1: 'wind' must be one of 'N', 'S'; received 'E'."
    known = rows.unknown([{"wind": "W"}], "known", known_alone=True)
    assert str(known[0]) == "known: 'wind' must be one of 'N', 'S'; received 'W'."
    many = Rows((Column("c", tuple(f"c{place}" for place in range(15))),))
    assert "'c11' and 3 more; received 'd'." in str(many.unknown((("d",),), "series")[0])


def test_a_batch_of_tables_is_filled_window_by_window():
    rows = Rows((Column("a", fill=11.0), Column("b", fill=13.0)))
    values = np.random.default_rng(0).normal(size=(3, 7, 2)).astype("float32")
    values[np.random.default_rng(1).random(values.shape) < 0.4] = math.nan
    filled = rows.filled(values)
    assert filled.dtype == np.float64
    for window, found in zip(values, filled, strict=True):
        for place, column in enumerate(rows.columns):
            last = column.fill
            for step, number in enumerate(window[:, place]):
                last = last if math.isnan(number) else number
                assert found[step, place] == last


def test_numbers_are_scaled_before_they_are_float32():
    far = Column("far", mean=1e9, deviation=7.0, fill=1e9)
    tiny = Column("tiny", mean=2e-12, deviation=1e-12, log=True)
    rows = Rows((far, Column("wind", ("N",)), tiny))
    window, _ = rows.window(((1e9 + 7, "N", 4e-12), (None, None, -5.0)), "series")
    assert window.dtype == np.float32
    np.testing.assert_allclose(window, [[1, 2, 1], [1, -2, 0]], rtol=1e-6)
    values = rows.unscaled(np.float32([[1, 0.5, 7], [-2, 3, 11]]))
    expected = [[1e9 + 7, 0.5, 9e-12], [1e9 - 14, 3, 13e-12]]  # exp(x) - 1 is x of such numbers
    np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_cycles_are_sine_and_cosine_of_the_time_s_phase():
    rows = Rows((Column("load"),), TimeColumn(("time",), step=6 * 3600, cycles=("day", "year")))
    times = [datetime.datetime(2024, 12, 31, 6 * hour) for hour in range(3)]
    window, last = rows.window([(time, 1.0) for time in times], "series")
    future = rows.future(None, last, 2, "known")
    for row, time in zip([*window[:, 1:], *future], [*times, times[2] + (times[1] - times[0])]):
        day = 2 * math.pi * time.hour / 24
        year = 2 * math.pi * (time - datetime.datetime(2024, 1, 1)).total_seconds() / 366 / 86400
        expected = [math.sin(day), math.cos(day), math.sin(year), math.cos(year)]
        np.testing.assert_allclose(row, expected, atol=1e-6)
    np.testing.assert_allclose(future[1], [0, 1, 0, 1], atol=1e-6)  # the new year
    assert (rows.num_features, rows.num_known) == (5, 4)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((("2024-01-01", "b", "N"),), "series: 'load' must be a number; received 'b'."),
        ((("2024-01-01", math.inf, "N"),), "series: 'load' must be a number; received float inf."),
        (
            (("2024-01-01", 1e39, "N"),),
            "series: 'load' must be a number of float32, under 3e38; received float 1e+39.",
        ),
        ((("2024-01-01", True, "N"),), "series: 'load' must be a number; received bool True."),
        ((("2024-01-01", np.True_, "N"),), "'load' must be a number; received bool np.True_"),
        ((("2024-01-01", "1,250", "N"),), "series: 'load' must be a number; received '1,250'."),
        (((None, 1, "N"),), "series: 'time' must be a time in ISO 8601, as 2024-12-31 23:00, or "),
        ((("Monday", 1, "N"),), "series: 'time' must be a time in ISO 8601, as 2024-12-31 23:00"),
        (
            (("2024-01-01", 1, ["N"]),),
            "series: 'wind' must be a text, a number, true or false, or ",
        ),
        (((1, "N"),), "series must hold time, load, wind, or be a dictionary of them; rec"),
        (({"time": "2024-01-01", "load": 1},), "series has no 'wind'; it has time, load."),
        ("2024", "series must be rows of time, load, wind; received '2024'."),
        ((), "series must be rows of time, load, wind; received tuple ()."),
        (
            (("2024-01-01T00:00:00", 1, "N"), ("2024-01-01T00:00:03", 1, "N")),
            "series, row 2: expected the time 2024-01-01T00:00:02, 2 seconds after the row before;"
            " received 2024-01-01T00:00:03.",
        ),
    ],
)
def test_a_row_that_can_not_be_read_is_named(rows, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Rows(COLUMNS, HOURS).window(rows, "series")


def test_what_is_known_must_be_whole():
    rows = Rows((Column("price", known=True), *COLUMNS))
    known = [{"price": 3, "wind": "S"}, {"price": 4, "wind": "N"}]
    np.testing.assert_array_equal(rows.future(known, None, 2, "known"), [[3, 0, 1], [4, 1, 0]])
    with pytest.raises(ValueError, match=r"^known must have 3 rows; received 2\.$"):
        rows.future(known, None, 3, "known")
    with pytest.raises(ValueError, match=r"^known, row 2: 'price' must be known\.$"):
        rows.future([known[0], known[1] | {"price": "NA"}], None, 2, "known")


def settings(**known):
    wind = CATEGORY | {"categories": ["N"], **known}
    return {"rows": {"columns": [NUMBER, wind]}}


@pytest.fixture
def folder(tmp_path):
    return write_bundle(tmp_path / "bundle", "Forecast", graph(), settings(), tokenizers={})


def values_of(command, folder, *given):
    """What `predict` answers each, as arrays."""
    status, output, error = command("predict", folder, "--json", *map(str, given))
    assert status == 0, error
    return [np.array(json.loads(line)["values"]) for line in output.splitlines()]


def test_a_bundle_answers_rows_a_csv_file_and_json_alike(folder, tmp_path, command):
    expected = (np.float32([5 + 2, 1, 1]) @ W[:3]).reshape(2, 4)
    rows = ({"wind": "N", "load": None, "more": 1}, ("5", "E"))
    np.testing.assert_allclose(serving.load(folder)(rows).values, expected, rtol=1e-5)
    file = tmp_path / "last.csv"
    file.write_text("day,wind,load\n1,N,NA\n2,E,5\n")
    for values in values_of(command, folder, file, json.dumps([[None, "N"], [5, "E"]])):
        np.testing.assert_allclose(values, expected, rtol=1e-5)
    file.write_bytes(b"load,wind\n1,\xff\n")
    status, _, error = command("predict", folder, str(file))
    told = "last.csv, line 2: the byte 0xff is not UTF-8; save the file as UTF-8."
    assert status == 1 and told in error


def test_an_unknown_category_is_told_or_refused(folder, command):
    forecast = serving.load(folder)
    known, unknown = ((1, "N"), (5, "N")), ((1, "N"), (5, "E"))
    answers = forecast([known, unknown])
    assert [answer.unknown for answer in answers] == [{}, {"wind": {"E": 1}}]
    message = "series[1], row 2: 'wind' must be one of 'N'; received 'E'."
    with pytest.raises(ValueError, match=re.escape(message)):
        forecast([known, unknown], strict=True)
    with pytest.raises(ValueError, match=r"^Forecast: strict must be True or False; received 'no'"):
        forecast(known, strict="no")
    given = json.dumps(unknown)
    status, output, _ = command("predict", folder, "--json", given)
    assert status == 0 and json.loads(output)["unknown"] == {"wind": {"E": 1}}
    status, _, error = command("predict", folder, given)
    told = "'wind' is 'E' in 1 row: the model does not know this category; --strict refuses such"
    assert status == 0 and told in error
    status, _, error = command("predict", folder, "--strict", given)
    assert status == 1 and "row 2: 'wind' must be one of 'N'; received 'E'." in error


def test_frames_with_an_unknown_category_are_refused(tmp_path):
    rows = {"columns": [{"name": "wind", "categories": ["N", "S"]}]}
    given = {"labels": ["a", "b"], "rows": rows}
    classify = load(tmp_path, "Classify", frames_graph(COUNTING), given, tokenizers={})
    assert classify((("N",), ("S",))).labels == ("b",)
    with pytest.raises(ValueError, match=r"row 2: 'wind' must be one of 'N', 'S'; received 'E'\.$"):
        classify((("N",), ("E",)))


def test_lines_of_a_file_of_several_series_begin_with_their_names(tmp_path, command):
    given = settings()
    given["rows"]["series"] = "day"
    folder = write_bundle(tmp_path / "bundle", "Forecast", graph(), given, tokenizers={})
    (tmp_path / "last.csv").write_text("day,wind,load\nMo,N,3\nTu,E,5\nMo,N,7\n")
    single = [[{"day": "Mo", "wind": "N", "load": load} for load in (3, 7)], [[5, "E"]]]
    lines = str(tmp_path / "last.csv"), *map(json.dumps, single)
    status, output, _ = command("predict", folder, *lines)
    monday, tuesday, *others = output.splitlines()
    assert status == 0 and monday.startswith("Mo\t") and tuesday.startswith("Tu\t")
    assert others == [monday, tuesday.removeprefix("Tu\t")]


def test_the_last_rows_of_a_csv_file_are_the_known_ones(tmp_path, command):
    columns = [{"name": name, "known": True} for name in ("a", "b", "c", "d")]
    given = graph(4, known=True), {"rows": {"columns": columns}}
    folder = write_bundle(tmp_path / "bundle", "Forecast", *given, tokenizers={})
    (tmp_path / "last.csv").write_text("a,b,c,d\n1,2,3,4\n5,6,7,8\n1,1,1,1\n2,2,2,2\n")
    [values] = values_of(command, folder, tmp_path / "last.csv")
    series = ((1, 2, 3, 4), (5, 6, 7, 8))
    answer = serving.load(folder)({"series": series, "known": ([1] * 4, [2] * 4)})
    np.testing.assert_allclose(values, answer.values, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_rows_to_forecast_that_have_times_follow_the_past(seed):
    draw = random.Random(seed)
    step = draw.randint(1, 9)
    time = TimeColumn(("time",), step=step * 3600, cycles=("day",))
    rows = Rows((Column("load"), Column("price", known=True)), time)
    last = datetime.datetime(2024, 2, 28, draw.randint(0, 23))
    given = [last + datetime.timedelta(hours=step * count) for count in range(1, 5)]
    known = [{"price": draw.random(), "time": moment.isoformat()} for moment in given]
    without_times = [(row["price"],) for row in known]
    answers = [rows.future(each, last, 4, "known") for each in (known, without_times)]
    np.testing.assert_array_equal(*answers)
    wrong = draw.randrange(4)
    known[wrong]["time"] = (given[wrong] + datetime.timedelta(hours=step)).isoformat()
    told = f"known, row {wrong + 1}: expected the time {given[wrong].isoformat()}, {step} hour"
    with pytest.raises(ValueError, match=f"^{re.escape(told)}.*; received {known[wrong]['time']}"):
        rows.future(known, last, 4, "known")
    known[wrong]["time"] = ""  # rows without all their times are of the steps that follow
    np.testing.assert_array_equal(rows.future(known, last, 4, "known"), answers[0])


@pytest.fixture
def planned(tmp_path):
    """A bundle of two targets and a plan that is known for the two steps to forecast."""
    plan = {"name": "plan", "categories": ["a", "b", "c", "d"], "known": True}
    columns = [{"name": "load"}, {"name": "level"}, plan]
    given = {
        "quantiles": [0.1, 0.9],
        "rows": {"columns": columns, "series": "site", "time": {"columns": ["day"], "step": 86400}},
    }
    graph_of_plans = graph(6, known=True, quantiles=True)
    return write_bundle(tmp_path / "bundle", "Forecast", graph_of_plans, given, tokenizers={})


SITES = ("N", "S", "W")


def plans(draw, held):
    """Lines of a file of sites with their days mixed; the last two days of each are to be forecast,
    and hold the targets of `held`: (site, day, column)."""
    lines = []
    for day in range(5):
        for site in draw.sample(SITES, 3):
            load, level = (
                str(draw.randint(1, 9)) if day < 3 or (site, day, name) in held else empty
                for name, empty in (("load", ""), ("level", "NA"))
            )
            lines.append(f"{site},{load},{level},{draw.choice('abcd')},2024-03-0{day + 1}\n")
    return lines


@pytest.mark.parametrize("seed", range(5))
def test_rows_to_forecast_that_hold_targets_are_of_the_past(planned, seed, tmp_path, command):
    draw = random.Random(seed)
    file, header = tmp_path / "site.csv", "site,load,level,plan,day\n"
    lines = plans(draw, held=())
    file.write_text(header + "".join(lines))
    rows = [dict(zip(header.strip().split(","), line.strip().split(","))) for line in lines]
    forecast = serving.load(planned)
    for site, values in zip([row["site"] for row in rows[:3]], values_of(command, planned, file)):
        of_site = [row for row in rows if row["site"] == site]
        expected = forecast({"series": of_site[:3], "known": of_site[3:]})
        np.testing.assert_allclose(values, expected.values, rtol=1e-6)
    site, day, name = draw.choice(SITES), draw.choice((3, 4)), draw.choice(("load", "level"))
    lines = plans(draw, held=[(site, day, name)])
    file.write_text(header + "".join(lines))
    [line] = [
        number
        for number, text in enumerate(lines, start=2)
        if text.startswith(site) and f"-0{day + 1}" in text
    ]
    status, output, error = command("predict", planned, str(file), "--truncate")
    assert (status, output) == (1, "")
    assert error == (
        f"seqkeras predict: {file}, site {site}: the last 2 rows are read as the steps to "
        "forecast, with known columns filled and targets empty; they hold values of "
        f"{name!r} in line {line} (2024-03-0{day + 1}); append the rows of the steps to forecast, "
        f"or empty {name!r} in these rows to forecast steps that are past.\n"
    )


def test_a_history_without_a_plan_is_refused_for_all_its_series(planned, tmp_path, command):
    file = tmp_path / "site.csv"
    rows = [f"{site},1,2,a,2024-03-0{day}\n" for site in SITES for day in (1, 2, 3)]
    file.write_text("".join(["site,load,level,plan,day\n", *rows]))
    _, _, error = command("predict", planned, str(file))
    told = "'load' and 'level' from line 3 (2024-03-02) to line 4 (2024-03-03), as do those of 2 "
    assert told in error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "site;load;level;plan;day\nN;1;2;a;2024-03-01\n",
            "columns must be divided by commas; received the header 'site;load;level;plan;day'; ",
        ),
        (
            "load,level,plan,day\n1,2,a,2024-03-01\n\n1,2,a,2024-03-03\n,,a,\n,,a,\n",
            "line 4: expected the time 2024-03-02T00:00:00, 1 day after the row before; received "
            "2024-03-03T00:00:00; rows that are missing may be given without values "
            '(gaps="fill", --gaps fill).',
        ),
        (
            "load,level,plan,day\n1,2,a,2024-02-29\n1,2,a,2024-02-30\n,,a,\n,,a,\n",
            "line 3: 'day' must be a time in ISO 8601, as 2024-12-31 23:00, or a number of seconds "
            "since 1970; received '2024-02-30': there is no such day.",
        ),
        (
            'load,level,plan,day\n1,2,"a\n",2024-02-28\n1,x,a,2024-02-29\n,,a,\n,,a,\n',
            "line 4: 'level' must be a number; received 'x'.",
        ),
        ("load,level,plan,day\n1,2,a,2024-02-29\n,,a,\n,,NA,\n", None),
    ],
)
def test_a_row_of_a_file_is_named_by_its_line(planned, content, message, tmp_path, command):
    file = tmp_path / "site.csv"
    file.write_text(content)
    status, _, error = command("predict", planned, str(file), "--truncate")
    assert (status, error) == (0, "") if message is None else (status == 1 and message in error)


def test_gaps_of_a_history_are_filled_as_those_of_a_training_file(planned, tmp_path, command):
    file, whole = tmp_path / "gaps.csv", tmp_path / "whole.csv"
    head, past = "site,load,level,plan,day", ["N,1,2,a,2024-03-01", "N,3,4,b,2024-03-04"]
    future = ["N,,,c,2024-03-05", "N,,,d,2024-03-06"]
    between = ["N,,,,2024-03-02", "N,,,,2024-03-03"]
    file.write_text("\n".join([head, *past, *future]))
    whole.write_text("\n".join([head, past[0], *between, past[1], *future]))
    [expected] = values_of(command, planned, whole)
    for cut in ([], ["--truncate"]):
        [found] = values_of(command, planned, file, "--gaps", "fill", *cut)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    time, step = TimeColumn(("day",)), named_step("1 day")
    [trained], _, _ = read_series(file, ("load", "level", "plan"), time, gaps="fill", step=step)
    pipeline = serving.load(planned)
    rows = [dict(zip(head.split(","), line.split(","))) for line in past]
    filled = pipeline.rows.without_gaps(rows, "series")
    assert [[value or "" for value in row] for row in filled] == trained.rows[:4]
    series = {"series": rows, "known": [{"plan": "c"}, {"plan": "d"}]}
    np.testing.assert_allclose(pipeline(series, gaps="fill").values, expected, rtol=1e-6)
    rows[1]["load"] = "x"
    with pytest.raises(ValueError, match="^Forecast: series, row 2: 'load' must be a number; rec"):
        pipeline(series, gaps="fill")  # the row is the second of the user's
    rows[1] |= {"load": 3, "day": "2124-03-04"}
    with pytest.raises(ValueError, match="row 2: 36,526 rows are missing .* at most 10,000 may be"):
        pipeline(series, gaps="fill")
    years = [{**rows[0], "day": f"{2000 + year}-03-01"} for year in range(30)]
    with pytest.raises(ValueError, match="row 29: 10,199 rows are missing .* was of 2027-03-01T00"):
        pipeline({**series, "series": years}, gaps="fill")
    with pytest.raises(ValueError, match="^Forecast: gaps must be refuse or fill; received 'few'."):
        pipeline(series, gaps="few")


def test_old_rows_are_forgotten_before_gaps_are_filled(folder):
    answer = serving.load(folder)(((100, "N"), *[(None, "N")] * 31), truncate=True)
    expected = (np.float32([31 * 2, 31, 31]) @ W[:3]).reshape(2, 4)
    np.testing.assert_allclose(answer.values, expected, rtol=1e-4)


def test_settings_that_are_not_the_graph_s_are_refused(tmp_path):
    message = "settings.rows are of 3 numbers a row and 1 a known one; the graph takes 3"
    with pytest.raises(BundleError, match=re.escape(message)):
        load(tmp_path, "Forecast", graph(), settings(known=True), tokenizers={})
    spelled = settings()
    spelled["rows"]["columns"][1]["categories"] = ["N", "1.0"]
    message = "categories must be written as they are read: '1.0' of 'wind' is read as '1'"
    with pytest.raises(BundleError, match=re.escape(message)):
        load(tmp_path / "spelled", "Forecast", graph(4), spelled, tokenizers={})
    wrong = {"rows": {"columns": [NUMBER, NUMBER], "time": {"columns": [], "cycles": ["moon"]}}}
    message = (
        "rows must have columns of different names; received l.*the time must be of 1 to 6 columns;"
        ".*cycles must be day, week, year; received 'moon'"
    )
    with pytest.raises(BundleError, match=message):
        load(tmp_path / "other", "Forecast", graph(), wrong, tokenizers={})
