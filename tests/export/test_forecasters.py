"""Forecasters of Keras's own layers, as its users write them."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from seqkeras.export.bundle import ExportOptions
from seqkeras.export.checks import ExportError
from tests.arrays import close, floats, randomize
from tests.conftest import others_long
from tests.export.bundles import bundled

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


@pytest.mark.parametrize("make", others_long([fixed, flat, convolutions, of_any_length, own]))
def test_a_forecaster_of_keras_is_served_as_it_is(make, tmp_path):
    model = randomize(make())
    features = 1 if make in (fixed, flat) else 3
    lengths = (11, 17, 13, 11) if make is of_any_length else [WINDOW] * 4
    series = [floats(length, features, seed=n) for n, length in enumerate(lengths)]
    targets = 2 if make is convolutions else 1
    examples = [{"input": each.tolist(), "target": np.ones((HORIZON, targets))} for each in series]
    limit = 31 if make is of_any_length else WINDOW
    forecast = bundled(tmp_path, model, "Forecast", examples, limit, options=ExportOptions())
    for each, answer in zip(series, forecast(series), strict=True):
        window = each[None, :, 0] if make is flat else each[None]
        expected = ops.convert_to_numpy(model(window))[0].reshape(HORIZON, targets)
        close(answer.values, expected, rtol=1e-4, atol=1e-5)
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    about = f"A series of {WINDOW} numbers." if make is flat else f"each of {features} numbers."
    assert about in card
    if make is not of_any_length:
        long = np.concatenate([series[1], series[0]])
        with pytest.raises(ValueError, match=r"series must have shape \(13,.*received \(26,"):
            forecast(long)
        close(forecast(long, truncate=True).values, forecast(series[0]).values, 1e-4, 1e-5)


@pytest.mark.long
def test_lengths_that_a_forecaster_reads_let_series_share_a_batch(tmp_path):
    series = [floats(length, 1, seed=length) for length in (5, 11, 17)]
    model = randomize(with_lengths(used=True))
    forecast = bundled(tmp_path, model, "Forecast", series, 31, options=ExportOptions())
    inputs = forecast.manifest.graphs["model"].inputs
    assert [each.name for each in inputs] == ["window", "lengths"]
    for each, answer in zip(series, forecast(series), strict=True):
        close(answer.values, forecast(each).values, rtol=1e-4, atol=1e-5)


def test_lengths_that_a_forecaster_does_not_read_are_refused(tmp_path):
    message = "output changes with the padding after an input: leave it out by lengths or padding_"
    model = randomize(with_lengths(used=False))
    with pytest.raises(ExportError, match=message):
        bundled(tmp_path, model, "Forecast", [floats(11, 1)], 31, check_export=False)
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
