"""Forecasts of a user's file: what is learned, what it is held against, what is refused."""

import csv
import dataclasses
import datetime
import json
import math
import random
import re

import keras
import numpy as np
import pandas
import pytest

from seqkeras import serving
from seqkeras.data.series import WindowArrays
from seqkeras.data.texts import DataError
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.next_command import next_command
from seqkeras.runs import RunError, RunFiles
from seqkeras.serving.http.application import Service
from seqkeras.serving.pipelines.forecast import forecasting_of
from seqkeras.serving.printing import as_line
from seqkeras.serving.results import Forecasting
from seqkeras.training.parts import forecasting
from seqkeras.training.parts.baselines.forecasts import forecasts, persistence
from seqkeras.training.parts.forecasting_scores import forecast_scores, forecast_summary
from seqkeras.training.tasks.forecasting import ForecastingOptions
from tests.arrays import close
from tests.conftest import in_shell, others_long
from tests.serving.http.served import ask, on_socket
from tests.training.commands import evaluated, exported, printed, refused_files, scores_of

COLUMNS = {
    "targets": ("load",),
    "numbers": ("mild", "plan"),
    "categories": ("tariff",),
    "known": ("plan", "tariff"),
    "time": ("time",),
    "cycles": ("day",),
}
PLAIN = ("persistence", "seasonal naive", "climatology", "ridge", "exponential smoothing")
SIZES = {"context": 13, "horizon": 5, "period": 6, "batch_size": 11, "units": 7}


def hourly(path, count=211, missing=0.1, tail=""):
    """A CSV file: a load that swings with the day, and follows a plan."""
    draw, time = random.Random(0), datetime.datetime(2024, 1, 1)
    lines = ["time,load,mild,plan,tariff,note"]
    for place in range(count):
        plan = place * place % 7
        load = 40 + 9 * math.sin(place * math.pi / 12) + plan + draw.gauss(0, 0.3)
        shown = "NA" if draw.random() < missing else f"{load:.3f}"
        tariff = "night" if place % 24 < 7 else "day"
        lines.append(f"{time},{shown},{draw.gauss(3, 1):.2f},{plan},{tariff},x")
        time += datetime.timedelta(hours=1)
    path.write_text("\n".join(lines) + "\n" + tail)
    return str(path)


def arguments(**options):
    """Options as the command line has them."""
    words = []
    for name, value in options.items():
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words += ["--" + name.replace("_", "-"), text]
    return words


def task_of(file, **options):
    """A task that has read its file, its windows of training, and of validation."""
    task = ForecastingOptions(file=file, **COLUMNS, **SIZES, **options).make()
    return task, *task.reading.read()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run of quantiles, its file, and what was printed."""
    folder = tmp_path_factory.mktemp("forecasting")
    file = hourly(folder / "load.csv")
    options = arguments(**COLUMNS, **SIZES, quantiles=(0.1, 0.5, 0.9), passes=20, held_out=0.2)
    options += ["--learning-rate", "0.02", "--warmup-steps", "5"]
    return folder / "run", file, printed("forecasting", file, *options, "--out", folder / "run")


def test_it_learns_and_is_measured_beside_naive_forecasts(trained):
    folder, _, (first, *_, following) = trained
    scores = scores_of(folder)
    assert first == (
        "forecasting: 152 training and 38 validation windows of 13 steps, and 5 to come"
    )
    assert scores["windows"] == 38
    assert [*scores["forecasts"]] == ["model", *PLAIN]
    naive = min(scores["forecasts"][name]["mae"] for name in ("persistence", "seasonal naive"))
    assert scores["mae"] < 0.6 * naive
    assert scores["better_than_naive"] == pytest.approx(1 - scores["mae"] / naive)
    with (folder / "history.csv").open() as file:
        looks = [row for row in csv.DictReader(file) if row["MAE"]]
    best = min(looks, key=lambda row: float(row["validation_loss"]))
    for name in ("mae", "rmse", "mase"):
        assert float(best[name.upper()]) == pytest.approx(scores[name], rel=1e-5)
    assert following == f"next: seqkeras export {folder} bundles/run"
    assert (folder / "forecast.png").read_bytes().startswith(b"\x89PNG")


def test_a_naive_forecast_without_an_error_is_told():
    targets = np.arange(7.0).reshape(7, 1, 1)
    answers = [Forecasting(target + 2, {}) for target in targets]
    baselines = {"persistence": targets, "seasonal naive": targets + 1}
    scores = forecast_scores(answers, targets, baselines, ["load"], np.ones((7, 1)))
    assert "better_than_naive" not in scores
    summary = forecast_summary(scores)
    assert summary.startswith("MAE is 2; the MAE of the better naive forecast is 0")


@pytest.mark.long
def test_the_line_of_the_export_answers_the_file_of_the_training(trained, tmp_path):
    folder, file, _ = trained
    manifest = export(folder, tmp_path / "b", options=ExportOptions(saved_models=False))
    line = next_command(tmp_path / "b", manifest, folder)
    command, _, said = line.partition("  # ")
    assert command == f"seqkeras predict {tmp_path / 'b'} --examples" and in_shell(
        command, tmp_path
    )
    rows = "the last rows of load.csv, and 5 rows to come without targets"
    assert said == f"or last.csv --truncate: {rows}"
    command = command.replace("--examples", "last.csv --truncate")
    rows = pandas.read_csv(file, dtype=str, keep_default_na=False)
    rows.loc[len(rows) - 5 :, "load"] = ""
    rows.to_csv(tmp_path / "last.csv", index=False)
    rows = rows.to_dict("records")
    given = {"series": rows[:-5], "known": rows[-5:]}
    expected = as_line(serving.load(tmp_path / "b")(given, truncate=True)).split()
    assert [float(number) for number in in_shell(command, tmp_path).split()] == pytest.approx(
        [*map(float, expected)], rel=1e-4
    )


def test_a_picture_has_times_and_the_better_naive_forecast(trained, tmp_path, monkeypatch):
    folder, file, _ = trained
    task, _, validation = task_of(file, quantiles=(0.1, 0.5, 0.9), held_out=0.2)
    drawn = []
    monkeypatch.setattr(forecasting, "plot_forecasts", lambda plots, *_: drawn.extend(plots))
    model = keras.models.load_model(folder / "model.keras", compile=False)
    task.scoring.draw(model, RunFiles.read(folder), tmp_path / "forecast.png")
    scores = scores_of(folder)["forecasts"]
    better = min(("persistence", "seasonal naive"), key=lambda name: scores[name]["mae"])
    with open(file, newline="") as lines:
        rows = [*csv.DictReader(lines)]
    first, last = drawn[0], drawn[-1]
    assert len(drawn) == 4 and [*first.naive] == [better] == ["persistence"]
    assert first.title == "2024-01-08T00:00:00"  # behind it the held out rows begin
    times = [datetime.datetime.fromisoformat(row["time"]) for row in rows[-18:]]
    np.testing.assert_array_equal(last.times, np.array(times, "M8[us]"))
    loads = [float(row["load"]) for row in rows[-18:-5] if row["load"] != "NA"]
    np.testing.assert_allclose(last.naive["persistence"], [loads[-1]] * 5, rtol=1e-6)
    assert len(last.past) == 13 and len(last.came) == len(last.forecast) == 5


def test_scores_are_those_of_loops_over_the_answers(trained):
    """Answers by the saved model, of windows cut here from the file; bands as they were."""
    folder, file, _ = trained
    scores = scores_of(folder)
    [factor, other] = scores["calibration"]["factors"]["load"]
    assert factor == other
    task, train, validation = task_of(file, held_out=0.2, quantiles=(0.1, 0.5, 0.9))
    model = keras.models.load_model(folder / "model.keras", compile=False)
    inputs, targets, _ = task.modelling.arrays(validation, None)
    everything = range(len(validation))
    given = {name: arrays[everything] for name, arrays in inputs.items()}
    [load, *_] = task.reading.rows.columns
    values = load.mean + load.deviation * np.asarray(model(given), "float64")
    targets = load.mean + load.deviation * targets[everything].astype("float64")
    errors, covered, squares = [], [], []
    for row, step in np.argwhere(~np.isnan(targets[..., 0])):
        low, middle, high = values[row, step, 0]
        target = float(targets[row, step, 0])
        errors.append(abs(middle - target))
        squares.append((middle - target) ** 2)
        covered.append(low - middle <= factor * (target - middle) <= high - middle)
    assert scores["mae"] == pytest.approx(np.mean(errors), rel=1e-4)
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-4)
    assert scores["coverage"]["found"] == pytest.approx(np.mean(covered), abs=0.02)
    with open(file) as lines:
        loads = [line.split(",")[1] for line in [*lines][1:170]]
    steps = [
        abs(float(after) - float(before))
        for before, after in zip(loads, loads[1:])
        if "NA" not in (before, after)
    ]
    assert scores["mase"] == pytest.approx(np.mean(errors) / np.mean(steps), rel=1e-4)


def test_the_last_value_is_repeated():
    past = np.arange(2 * 7 * 3).reshape(2, 7, 3)
    np.testing.assert_array_equal(persistence(past, 5), np.stack([past[:, 6]] * 5, axis=1))


@pytest.mark.parametrize("period", [3, 13, 24, 190])  # shorter and longer than the context, 13
def test_the_seasonal_forecast_is_what_the_file_has_a_period_before(period, tmp_path):
    file = hourly(tmp_path / "load.csv")
    task, _, validation = task_of(file)
    options = dataclasses.replace(task.options, period=period)
    found = forecasts(validation, options)[0]["seasonal naive"]
    with open(file) as lines:
        loads = [row["load"] for row in csv.DictReader(lines)]
    for window, values in zip(validation, found, strict=True):
        for step, value in enumerate(values[:, 0]):
            row = window.future.start + step
            while row >= window.future.start:
                row -= period
            while loads[row] == "NA":
                row -= 1
            assert value == float(loads[row])


def test_a_period_without_a_season_in_the_file_is_told(tmp_path):
    file = hourly(tmp_path / "load.csv", missing=0)
    options = arguments(**COLUMNS, **(SIZES | {"period": 191}), max_steps=1, held_out=0.1)
    options += ["--model", "qrnn", "--looks", "1"]
    lines = " ".join(printed("forecasting", file, *options, "--out", tmp_path / "run"))
    told = "no seasonal naive forecast: a season of 191 steps is more than the 190 rows before the "
    assert f"{told}first window's targets" in " ".join(lines.split())
    assert "the MAE of the naive forecast (persistence), MASE" in lines
    assert [*scores_of(tmp_path / "run")["forecasts"]] == [
        "model",
        *(name for name in PLAIN if name != "seasonal naive"),
    ]


def test_looks_at_a_part_of_the_windows_are_told(tmp_path, capsys):
    task, _, validation = task_of(hourly(tmp_path / "load.csv", 700), held_out=0.5)
    assert len(task.scoring.looked_at(validation)) == 256
    assert (
        f"looks are of 256 of the {len(validation)} validation windows, evenly spread; "
        "validation_loss and scores.json are of all"
    ) in " ".join(capsys.readouterr().out.split())


def test_numbers_that_people_write_are_the_same_numbers(tmp_path):
    """Loads with groups and units, and the percentages of another column."""
    table = pandas.read_csv(hourly(tmp_path / "load.csv", missing=0))
    loads, shares = (100 * table["load"]).round().astype(int), (table["mild"] / 100).round(4)
    table.assign(load=loads, mild=shares).to_csv(tmp_path / "plain.csv", index=False)
    written = [f"{n:,}" if place % 2 else f"{n / 1e8:.8f}亿" for place, n in enumerate(loads)]
    percent = [f"{100 * share:.2f} %".replace(".", ",") for share in shares]
    table.assign(load=written, mild=percent).to_csv(tmp_path / "people.csv", index=False)
    plain, train, _ = task_of(str(tmp_path / "plain.csv"))
    given = {"decimal_point": ("load",), "decimal_comma": ("mild",)}
    people, others, _ = task_of(str(tmp_path / "people.csv"), **given)
    for part in ("window", "target"):
        same = (WindowArrays(windows, part)[range(31)] for windows in (train, others))
        np.testing.assert_allclose(*same, rtol=1e-6)
    assert [column.decimal for column in people.reading.rows.columns] == [".", ",", None, None]
    assert plain.reading.rows.columns[2:] == people.reading.rows.columns[2:]
    window, _ = people.reading.rows.window(others[0].text["series"], "series")
    np.testing.assert_array_equal(window, WindowArrays(others, "window")[[0]][0])


def test_what_is_held_out_changes_nothing_of_the_training(tmp_path):
    file = hourly(tmp_path / "load.csv")
    task, train, validation = task_of(file)
    with open(file) as lines:
        changed = [*lines]
    for place in range(len(changed) - 21, len(changed)):  # a tenth
        time, _, _, _, _, note = changed[place].split(",")
        changed[place] = f"{time},9e9,-7e7,1e6,unheard of,{note}"
    (tmp_path / "other.csv").write_text("".join(changed))
    other, others, _ = task_of(str(tmp_path / "other.csv"))
    assert task.reading.record(train, {}) == other.reading.record(others, {})
    for part in ("window", "known", "target"):
        rows = range(len(train))
        same = WindowArrays(train, part)[rows], WindowArrays(others, part)[rows]
        np.testing.assert_array_equal(*same)
    assert max(each.future.stop for each in train) == 190
    assert min(each.future.start for each in validation) == 190


def test_cycles_of_none_need_no_time():
    ForecastingOptions(file="load.csv", targets=("load",), cycles=("none",)).check()


def resized(path, factor, level, count=180):
    """A CSV file of a wave, in units of another size, about another level."""
    draw, lines = random.Random(0), ["x,y"]
    for place in range(count):
        wave = math.sin(place * math.pi / 12) + draw.gauss(0, 0.1)
        lines.append(f"{level + factor * wave!r},{level + factor * draw.gauss(5, 1)!r}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(("factor", "level"), [(1e-12, 0), (1e-100, 0), (1e20, 0), (10, 1e9)])
def test_neither_size_nor_level_of_a_series_changes_what_is_learned(factor, level, tmp_path):
    """The model's numbers, and all forecasts beside it; 1e9 leaves float64 a few digits less."""
    found = []
    for name, sizes in (("plain", (1, 0)), ("other", (factor, level))):
        options = {"targets": ("x",), "numbers": ("y",), "period": 24, "context": 12}
        options |= {"horizon": 5, "batch_size": 8}
        file = resized(tmp_path / f"{name}.csv", *sizes)
        task = ForecastingOptions(file=file, **options).make()
        train, validation = task.reading.read()
        inputs, targets, _ = task.modelling.arrays(train, None)
        rows = range(len(train))
        answer = np.zeros((5, 1))
        answers = [forecasting_of(answer, (), task.reading.rows)] * len(validation)
        scores = task.scoring.scores({"": (validation, answers)})["forecasts"]
        errors = {name: (each["mase"], each["mae"] / sizes[0]) for name, each in scores.items()}
        found.append((inputs["window"][rows], targets[rows], task.modelling.loss().scale, errors))
    (window, target, scale, errors), (other, others, other_scale, other_errors) = found
    np.testing.assert_allclose(other, window, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(others, target, rtol=1e-5, atol=1e-5)
    assert other_scale == pytest.approx(scale) == [1.0]
    assert [*errors] == ["model", *PLAIN]
    for name, each in errors.items():
        assert other_errors[name] == pytest.approx(each, rel=1e-5)


def test_the_loss_of_logarithms_is_that_of_the_file_s_numbers(tmp_path):
    file = hourly(tmp_path / "load.csv")
    task, train, _ = task_of(file, log=("load",), quantiles=(0.2, 0.8))
    targets = task.modelling.arrays(train, None)[1][range(7)]
    answers = np.random.default_rng(0).normal(size=(7, 5, 1, 2)).astype("float32")
    values = np.stack([task.reading.rows.unscaled(answer) for answer in answers])
    real = np.stack([window.target for window in train[:7]])
    expected = [
        max(q * error, (q - 1) * error) / task.reading.spreads[0]
        for place in np.argwhere(~np.isnan(real))
        for q, value in zip((0.2, 0.8), values[tuple(place)])
        for error in [real[tuple(place)] - value]
    ]
    assert float(task.modelling.loss()(targets, answers)) == pytest.approx(
        np.mean(expected), rel=1e-4
    )


@pytest.mark.parametrize(
    "options",
    others_long(
        [
            {"model": "transformer", "units": 8, "num_heads": 2, "quantiles": (0.2, 0.5, 0.8)},
            {"model": "lstm", "decoder": "recurrent", "from_last": False},
            {"model": "qrnn", "num_layers": 2},
            {"loss": "mse", "targets": ("load", "mild"), "numbers": ("plan",)},
            {"log": ("load", "plan"), "quantiles": (0.2, 0.8), "from_last": False},
        ]
    ),
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_model_forecasts_all_steps_and_targets(options, tmp_path):
    settings = COLUMNS | SIZES | options
    task = ForecastingOptions(file=hourly(tmp_path / "load.csv"), **settings).make()
    train, _ = task.reading.read()
    model = task.modelling.model(None)
    inputs, targets, _ = task.modelling.arrays(train, None)
    given = {name: arrays[range(11)] for name, arrays in inputs.items()}
    own = (len(settings["quantiles"]),) if "quantiles" in settings else ()
    assert model.output_shape == (None, 5, len(settings["targets"]), *own)
    model.compile(keras.optimizers.Adam(0.01), task.modelling.loss())
    first, *_, last = (model.train_on_batch(given, targets[range(11)]) for _ in range(12))
    assert last < first
    values = np.asarray(model(given))
    if own:
        assert (np.diff(values, axis=-1) > 0).all()


HOURS = "time,load,mild,plan,tariff\n" + "".join(
    f"2024-01-01 {hour:02}:00,{hour},{hour % 5},1.{hour % 3},{'ab'[hour % 2]}\n"
    for hour in range(24)
)


def without_loads(hours):
    """`HOURS` without the loads of some hours."""
    return re.sub(r":00,(\d+),", lambda load: ":00,," if int(load[1]) in hours else load[0], HOURS)


def changed(old, new):
    assert old in HOURS
    return HOURS.replace(old, new)


SHORT = "--held-out 0.3 --context 3 --batch-size 3"
EACH_4TH = without_loads([hour for hour in range(24) if hour % 4])
CONSTANT = HOURS.replace(",1.1,", ",1.0,").replace(",1.2,", ",1.0,")
test_a_file_that_nothing_can_be_learned_from_gets_one_line = refused_files(
    "forecasting",
    "load.csv",
    (without_loads(range(17, 24)), SHORT, "no value in the 7 rows that are held out, from line 19"),
    (EACH_4TH, SHORT, "no window has all of its targets of 5 steps: 'load' has a value in 6 of 24"),
    (HOURS, "--targets heat", "load.csv: there is no column 'heat'; there are 'time', "),
    (changed(",7,", ",7 kW,"), "", "line 9: 'load' must be a number; received '7 kW'."),
    (changed("07:00", "03:00"), "", "line 9: the time 2024-01-01 03:00 is before that of "),
    (changed("07:00", "06:00"), "", "line 9: the time 2024-01-01 06:00 is the same as th"),
    (changed("2024-01-01 07:00", "seven"), "", "line 9: 'time' must be a time in ISO 8601"),
    (changed("07:00", "07:00+00:00"), "", "line 9: 'time' must be a time without a zone offset"),
    (HOURS, "--context 20", "24 rows leave no validation window: a window of --context 20 and "),
    (HOURS, "--context 13 --held-out 0.3", "24 rows leave no window of 13 and 5 st"),
    (changed(",7,", ",-7,"), "--log load", "'load' may not be under 0, as it is --log; the traini"),
    (CONSTANT, "", "'plan' is 1 in all 17 training rows: nothing can be learned of it; leav"),
    (changed(",b\n", ",a\n"), "", "'tariff' must hold two categories at least in its tra"),
    (changed(",1.1,", ",NA,"), "", "load.csv, line 3: 'plan' must have a value: it is --k"),
    (changed("2024-01-01 07:00,7,2,1.1,b\n", ""), "", "1 row is missing; where clocks chan"),
    options=" ".join(arguments(**COLUMNS, **SIZES)),
)
test_options_that_do_not_go_together_get_one_line = refused_files(
    "forecasting",
    "load.csv",
    ("", "", "--targets is missing"),
    ("", "--targets a --numbers a", "must name different columns"),
    ("", "--targets a --known b", "--known must be of --numbers and --categories; received 'b'"),
    ("", "--targets a --log b", "--log must be of --targets and --numbers; received 'b'"),
    ("", "--targets a --cycles day", "--cycles needs --time"),
    ("", "--targets a --decimal-point b", "must be of --targets and --numbers; received 'b'"),
    ("", "--targets a --decimal-point a --decimal-comma a", "a column has one decimal sign"),
    ("", "--targets a --step month", "--step needs --time, the column of the time"),
    ("", "--targets a --time t --step month --gaps keep", "--step and --gaps keep exclude each"),
    ("", "--targets a --time t --step moon", "must be microsecond, millisecond, second, minute, "),
    ("", "--targets a --time t --cycles moon", "must be of day, week, year, none; received 'moon'"),
    ("", "--targets a --quantiles 0.5,0.1", "needs numbers that increase between 0 and 1; receive"),
    ("", "--targets a --model qrnn --decoder recurrent", "goes with --model gru or lstm"),
    ("", "--targets a --model transformer --num-heads 3", "--num-heads must divide --units"),
    status=2,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "\n".join(text.split("\n")[:9]), "a series needs 18 rows at least.$"),
        (
            lambda text: re.sub("(:00),", r"\1+08:00,", text),
            "other.csv, line 2: 'time' must be a time without a zone offset, as in training; ",
        ),
    ],
)
def test_a_file_that_does_not_fit_a_finished_run_is_refused(change, message, tmp_path):
    task, train, _ = task_of(hourly(tmp_path / "load.csv"))
    settings = json.loads(json.dumps(task.reading.record(train, {})["settings"]))
    task.reading.source_length = SIZES["context"]
    (tmp_path / "other.csv").write_text(change((tmp_path / "load.csv").read_text()))
    with pytest.raises((RunError, DataError), match=message):
        task.reading.examples_of([str(tmp_path / "other.csv")], settings)


def free_days(path, count=180):
    """A JSON file: a load that falls on free days, and a zone with a gap."""
    draw = random.Random(0)
    with path.open("w") as file:
        for place in range(count):
            free = place % 7 > 4
            row = {"load": 30 - 9 * free + draw.gauss(0, 0.1), "free": free, "zone": place % 2 + 1}
            file.write(json.dumps(row | ({"zone": None} if place % 5 == 0 else {})) + "\n")
    return str(path)


FREE = {"targets": ("load",), "categories": ("free", "zone"), "known": ("free",)}


def test_categories_are_read_in_every_spelling(tmp_path, capsys):
    """JSON's booleans and numbers; the same as pandas writes them; a category of held out rows."""
    options = dict(context=14, horizon=7, batch_size=8, **FREE)
    file = free_days(tmp_path / "load.jsonl")
    of_json = ForecastingOptions(file=file, **options).make()
    of_json.reading.read()
    frame = pandas.read_json(file, lines=True)
    frame.to_csv(tmp_path / "load.csv", index=False)
    text = (tmp_path / "load.csv").read_text()
    assert "True" in text and ",2.0\n" in text and ",\n" in text
    of_csv = ForecastingOptions(file=str(tmp_path / "load.csv"), **options).make()
    of_csv.reading.read()
    categories = [column.categories for column in of_json.reading.rows.columns]
    assert categories == [(), ("false", "true"), ("1", "2")]
    assert of_csv.reading.rows == of_json.reading.rows
    assert "read as one" not in capsys.readouterr().out
    lines = text.splitlines()
    lines[3] = lines[3].replace(",1.0", ",1.00")
    lines[-1] = lines[-1].rpartition(",")[0] + ",3"
    (tmp_path / "load.csv").write_text("\n".join(lines) + "\n")
    of_csv.reading.read()
    said = capsys.readouterr().out
    assert "load.csv: '1.0', '1.00' of 'zone' are read as one, '1'" in said
    assert "load.csv: 'zone' is '3' in 1 row and in none of training: the model reads no" in said


@pytest.mark.long
def test_a_column_of_booleans_is_known_where_it_is_served(tmp_path):
    file = free_days(tmp_path / "load.jsonl")
    options = arguments(context=14, horizon=7, batch_size=8, units=5, max_steps=2, **FREE)
    printed("forecasting", file, *options, "--out", tmp_path / "run")
    exported(tmp_path)
    assert "compute z and x in float64" in (tmp_path / "bundle" / "README.md").read_text()
    rows = [json.loads(line) for line in (tmp_path / "load.jsonl").read_text().splitlines()]
    frame = pandas.read_json(file, lines=True)
    series, known = rows[:14], [{"free": row["free"]} for row in rows[14:21]]
    spelled = [{**row, "free": str(row["free"]), "zone": str(row["zone"])} for row in series]
    of_pandas = frame[:14].to_dict("records")
    forecast = serving.load(tmp_path / "bundle")
    given = [{"series": own, "known": known} for own in (series, spelled, of_pandas)]
    answers = forecast(given, strict=True)
    others = forecast([{"series": series, "known": [{"free": "none of these"}] * 7}])
    assert others[0].unknown == {"free": {"none of these": 7}}
    with on_socket(Service([("load", tmp_path / "bundle")], log=False)) as port:
        status, found = ask(port, "/v1/bundles/load", {"inputs": given[:2]})
    assert status == 200
    for answer in answers:
        assert answer.unknown == {}
        close(answer.values, answers[0].values, rtol=1e-6, atol=1e-6)
    for answer in found["answers"]:
        assert "unknown" not in answer
        close(np.array(answer["values"]), answers[0].values, rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_the_bundle_forecasts_from_raw_rows_what_the_model_does(trained):
    folder, file, _ = trained
    forecast = serving.load(exported(folder.parent))
    task, _, validation = task_of(file, held_out=0.2, quantiles=(0.1, 0.5, 0.9))
    model = keras.models.load_model(folder / "model.keras", compile=False)
    inputs, _, _ = task.modelling.arrays(validation, None)
    given = {name: arrays[range(len(validation))] for name, arrays in inputs.items()}
    [load, *_] = task.reading.rows.columns
    expected = load.mean + load.deviation * np.asarray(model(given), "float64")
    answers = forecast([window.text for window in validation])
    for values, answer in zip(expected, answers, strict=True):
        for place, quantile in enumerate((0.1, 0.5, 0.9)):
            close(answer.quantiles[quantile], values[..., place], rtol=1e-4, atol=1e-4)
    names = ["time", "load", "mild", "plan", "tariff"]
    rows = [dict(zip(names, row)) for row in validation[0].text["series"]]
    known = [dict(zip(["plan", "tariff"], row)) for row in validation[0].text["known"]]
    answer = forecast({"series": rows, "known": known})
    close(answer.values, expected[0, ..., 1], rtol=1e-4, atol=1e-4)
    scores = [evaluated(folder.parent / name, file) for name in ("run", "bundle")]
    assert scores[0]["mae"] == pytest.approx(scores[1]["mae"], rel=1e-4)
    trained_scores = scores_of(folder)
    unit = trained_scores["mae"] / trained_scores["mase"]  # tested above by a loop
    for found in scores:
        for errors in found["forecasts"].values():
            assert errors["mase"] == pytest.approx(errors["mae"] / unit, rel=1e-6)
    assert [*scores[0]["forecasts"]] == ["model", "persistence", "seasonal naive"]
