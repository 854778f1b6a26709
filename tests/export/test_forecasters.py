"""Forecasters of Keras's own layers, as its users write them."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.__main__ import main
from seqkeras.export.bundle import export
from seqkeras.export.checks import ExportError
from seqkeras.runs import RunError
from seqkeras.serving.manifest import read_manifest
from tests.arrays import floats, randomize
from tests.conftest import others_long

WINDOW, HORIZON = 13, 7


def fixed():
    window = keras.Input((WINDOW, 1))
    return keras.Model(window, layers.Dense(HORIZON)(layers.LSTM(5)(window)))


def flat():
    return keras.Sequential(
        [keras.Input((WINDOW,)), layers.Dense(5, "relu"), layers.Dense(HORIZON)]
    )


def convolutions():
    window = keras.Input((WINDOW, 3), name="history")
    x = layers.Flatten()(layers.Conv1D(5, 3, activation="relu")(window))
    return keras.Model(window, layers.Reshape((HORIZON, 2))(layers.Dense(2 * HORIZON)(x)))


def of_any_length():
    window = keras.Input((None, 3))
    return keras.Model(window, layers.Dense(HORIZON)(layers.GRU(5)(window)))


@keras.saving.register_keras_serializable("tests")
class OwnForecaster(keras.Model):
    """By one tensor, of one length."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.flatten = layers.Flatten()
        self.out = layers.Dense(HORIZON)

    def call(self, x):
        return self.out(self.flatten(x))


def own():
    model = OwnForecaster()
    model(np.zeros((2, WINDOW, 3)))
    return model


def with_lengths(used):
    window, lengths = keras.Input((None, 1), name="window"), keras.Input((), name="lengths")
    ones = ops.ones_like(window[..., 0])
    states = layers.LSTM(5, return_sequences=True)(window)
    weights = ops.cast(ops.cumsum(ones, axis=1) <= lengths[:, None], "float32") if used else ones
    pooled = ops.sum(weights[..., None] * states, axis=1)
    return keras.Model([window, lengths], layers.Dense(HORIZON)(pooled))


def save(folder, model, series, **options):
    examples = [{"input": each.tolist(), "target": np.ones((HORIZON, 1))} for each in series]
    save_run(folder, randomize(model), "Forecast", examples, {"source_length": 31}, **options)


@pytest.mark.parametrize("make", others_long([fixed, flat, convolutions, of_any_length, own]))
def test_a_forecaster_of_keras_is_served_as_it_is(make, tmp_path, capsys):
    model = make()
    features = 1 if make in (fixed, flat) else 3
    lengths = (11, 17, 13, 11) if make is of_any_length else [WINDOW] * 4
    series = [floats(length, features, seed=n) for n, length in enumerate(lengths)]
    targets = 2 if make is convolutions else 1
    examples = [{"input": each.tolist(), "target": np.ones((HORIZON, targets))} for each in series]
    limits = {"source_length": 31 if make is of_any_length else WINDOW}
    save_run(tmp_path / "run", randomize(model), "Forecast", examples, limits)
    command = [str(tmp_path / "run"), str(tmp_path / "bundle")]
    assert main(command) == 0, capsys.readouterr().err
    forecast = serving.load(tmp_path / "bundle")
    for each, answer in zip(series, forecast(series), strict=True):
        window = each[None, :, 0] if make is flat else each[None]
        expected = ops.convert_to_numpy(model(window))[0].reshape(HORIZON, targets)
        np.testing.assert_allclose(answer.values, expected, rtol=1e-4, atol=1e-5)
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    about = f"A series of {WINDOW} numbers." if make is flat else f"each of {features} numbers."
    assert about in card
    if make is not of_any_length:
        long = np.concatenate([series[1], series[0]])
        with pytest.raises(ValueError, match=r"series must have shape \(13,.*received \(26,"):
            forecast(long)
        np.testing.assert_allclose(
            forecast(long, truncate=True).values, forecast(series[0]).values, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("make, features", [(fixed, 1), (flat, 1), (convolutions, 3)])
@pytest.mark.parametrize("limit", [7, 17])
def test_a_limit_beside_the_length_that_a_forecaster_has_fixed_is_refused(
    make, features, limit, tmp_path, capsys
):
    examples, given = [{"input": floats(WINDOW, features)}], {"source_length": limit}
    reason = f"limits.source_length must be 13, the length of the model's window; received {limit}:"
    with pytest.raises(RunError, match=f"{reason} give limits={{'source_length': 13}}"):
        save_run(tmp_path / "run", make(), "Forecast", examples, given)
    assert list(tmp_path.iterdir()) == []
    save_run(tmp_path / "run", make(), "Forecast", examples, given, check_export=False)
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    assert f"run.json: {reason}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.long
def test_lengths_that_a_forecaster_reads_let_series_share_a_batch(tmp_path):
    series = [floats(length, 1, seed=length) for length in (5, 11, 17)]
    save(tmp_path / "run", with_lengths(used=True), series)
    export(tmp_path / "run", tmp_path / "bundle")
    inputs = read_manifest(tmp_path / "bundle").graphs["model"].inputs
    assert [each.name for each in inputs] == ["window", "lengths"]
    forecast = serving.load(tmp_path / "bundle")
    for each, answer in zip(series, forecast(series), strict=True):
        np.testing.assert_allclose(answer.values, forecast(each).values, rtol=1e-4, atol=1e-5)


def test_lengths_that_a_forecaster_does_not_read_are_refused(tmp_path):
    save(tmp_path / "run", with_lengths(used=False), [floats(11, 1)], check_export=False)
    message = "output changes with the padding behind an input: leave it out by lengths or padding_"
    with pytest.raises(ExportError, match=message):
        export(tmp_path / "run", tmp_path / "bundle")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
