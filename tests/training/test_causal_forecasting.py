"""Forecasters that read a series from its start: they answer after each row of a stream."""

import csv

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data.series import WindowArrays
from seqkeras.export.bundle import ExportOptions, export
from tests.conftest import others_long
from tests.training.commands import printed
from tests.training.test_forecasting import COLUMNS, SIZES, arguments, hourly, task_of

STREAM = ExportOptions(saved_models=False, stream=True)
MODELS = {
    "gru": {},
    "transformer": {"model": "transformer", "attention_window": 6, "units": 8, "num_heads": 2},
    "qrnn": {"model": "qrnn", "num_layers": 2, "quantiles": (0.1, 0.5, 0.9)},
}


@pytest.mark.parametrize("name", others_long(MODELS))
def test_a_stream_forecasts_after_each_row_what_the_series_up_to_it_forecasts(name, tmp_path):
    file = hourly(tmp_path / "load.csv")
    options = COLUMNS | SIZES | MODELS[name] | {"causal": "true", "passes": 4, "looks": 1}
    printed("forecasting", file, "--out", tmp_path / "run", *arguments(**options))
    export(tmp_path / "run", tmp_path / "bundle", options=STREAM)
    forecast = serving.load(tmp_path / "bundle", threads=1)
    with open(file, newline="") as lines:
        rows = [*csv.DictReader(lines)]
    horizon, count = SIZES["horizon"], 40  # longer than any window of the training
    known = [rows[end : end + horizon] for end in range(1, count + 1)]
    stream = forecast.open()
    answers = []
    for start, end in ((0, 1), (1, 20), (20, count)):
        answers += stream.push({"series": rows[start:end], "known": known[start:end]})
        stream = forecast.open(state=bytes(stream.state))
    for end in (1, 13, count):
        whole = forecast({"series": tuple(rows[:end]), "known": known[end - 1]})
        np.testing.assert_allclose(answers[end - 1].values, whole.values, rtol=1e-4)
        for quantile, values in whole.quantiles.items():
            np.testing.assert_allclose(answers[end - 1].quantiles[quantile], values, rtol=1e-4)
    later = [{**rows[count], "time": rows[count + 1]["time"]}]
    with pytest.raises(ValueError, match="expected the time 2024-01-02T16:00:00, 1 hour after"):
        stream.push({"series": later, "known": known[:1]})


def test_training_reads_windows_of_several_lengths_that_end_where_the_forecast_begins(tmp_path):
    task, train, _ = task_of(hourly(tmp_path / "load.csv"), causal=True)
    whole = WindowArrays(train, "window")
    run, _ = task.prepared(tmp_path / "run", train, task.reading.kept(train), {})
    lengths = set()
    for (inputs, targets), rows in zip(
        task.modelling.batches(train, run).from_step(0),
        task.modelling.batches(train, run).order.from_step(0),
    ):
        length = inputs["window"].shape[1]
        lengths.add(length)
        np.testing.assert_array_equal(inputs["window"], whole[rows][:, -length:])
        np.testing.assert_array_equal(targets, WindowArrays(train, "target")[rows])
        if len(lengths) == 4:
            break
    assert lengths == {13, 6, 3, 1}
