"""A table of two stations becomes a stream of forecasts, by the commands that each step names."""

import csv
import datetime
import json
import math
import shutil

import keras
import numpy as np
import pytest

from seqkeras.runs import RunFiles
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.forecast import Settings
from tests.conftest import in_shell

TRAIN = (
    "seqkeras train forecasting air.csv --time time --targets pm --series-column station "
    "--cycles day --causal true --context 24 --horizon 3 --units 6 --num-layers 1 --max-steps 20 "
    "--out runs/air"
)
START = datetime.datetime(2024, 1, 1)


def written(path, hours):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", "station", "pm"])
        for hour in range(hours):
            for phase, station in enumerate(("north", "south")):
                pm = 50 + 30 * math.sin(hour * math.pi / 12 + phase)
                table.writerow([f"{START + datetime.timedelta(hours=hour)}", station, round(pm, 1)])
    return path


def read(path):
    with open(path, newline="") as file:
        return [*csv.DictReader(file)]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A folder in which the commands ran, and what each printed."""
    folder = tmp_path_factory.mktemp("air")
    written(folder / "air.csv", 200)
    printed, line = [], TRAIN
    while line:
        printed.append(in_shell(line, folder))
        line = printed[-1].splitlines()[-1].partition("next: ")[2]
    yield folder, printed
    shutil.rmtree(folder)


def test_each_command_names_the_next_and_the_last_streams(walked):
    trained, exported, streamed = walked[1]
    assert trained.splitlines()[-1] == "next: seqkeras export runs/air bundles/air --stream"
    assert exported.splitlines()[-1] == "next: seqkeras stream bundles/air < air.csv"
    assert [line.split("\t")[0] for line in streamed.splitlines()] == ["north", "south"] * 200


def test_a_station_with_lost_rows_is_answered_as_keras_answers(walked):
    folder, _ = walked
    rows = [row for row in read(folder / "air.csv") if row["station"] == "south"][:40]
    lost, bad = {7, 8, 21}, 30
    lines = ["time,station,pm"]
    for place, row in enumerate(rows):
        if place not in lost:
            pm = "much" if place == bad else row["pm"]
            lines.append(f"{row['time']},{row['station']},{pm}")
    (folder / "lost.csv").write_text("\n".join(lines), encoding="utf-8")
    line = "seqkeras stream bundles/air --json --gaps fill --state state < lost.csv || true"
    answers = [json.loads(answer) for answer in in_shell(line, folder).splitlines()]
    assert answers[bad - len(lost)].keys() == {"series", "error"} and len(answers) == 40 - len(lost)
    model = keras.models.load_model(folder / "runs/air/model.keras", compile=False)
    settings = RunFiles.read(folder / "runs/air").record.settings
    column = parse_fields(Settings, settings, "settings", [])["rows"].columns[0]
    window, last = [], column.fill
    for place, row in enumerate(rows):
        is_missing = place in lost or place == bad
        last = last if is_missing else float(row["pm"])
        angle = 2 * math.pi * (place % 24) / 24
        missing = [float(is_missing)] if column.may_be_missing else []
        scaled = (last - column.mean) / column.deviation
        window.append([scaled, *missing, math.sin(angle), math.cos(angle)])
    future = [2 * math.pi * ((40 + step) % 24) / 24 for step in range(3)]
    known = [[math.sin(angle), math.cos(angle)] for angle in future]
    given = {"window": np.array([window], "float32"), "known": np.array([known], "float32")}
    scaled = keras.ops.convert_to_numpy(model(given))[0].reshape(3, 1)
    expected = column.mean + column.deviation * scaled
    np.testing.assert_allclose(answers[-1]["values"], expected, rtol=1e-4)
    assert answers[-1]["series"] == "south"
