"""The linear forecaster against loops in float64."""

import keras
import numpy as np
import pytest

from seqkeras.models import LinearForecast
from seqkeras.models.linear_forecast import waves
from tests.arrays import close

B, S, H, C = 3, 7, 4, 2
KNOWN, ORDERS = [4, 2, 3], [2]  # a covariate, then the sine and the cosine of a cycle
SIZES = {"horizon": H, "num_targets": C, "known": KNOWN, "orders": ORDERS}


def inputs(random):
    """A window of five features and three known ones; the cycle goes on from one to the other."""
    phase = 0.3 + 0.4 * np.arange(S + H) + random.uniform(0, 6, (B, 1))
    covariate = random.normal(size=(B, S + H))
    window = random.normal(size=(B, S, 5))
    window[..., 2], window[..., 3] = np.sin(phase[:, :S]), np.cos(phase[:, :S])
    window[..., 4] = covariate[:, :S]
    known = np.stack([covariate, np.sin(phase), np.cos(phase)], axis=-1)[:, S:]
    return window, known, phase, covariate


def test_it_is_a_season_and_a_linear_map_of_what_is_left():
    random = np.random.default_rng(0)
    window, known, phase, covariate = inputs(random)
    layer = LinearForecast(**SIZES)
    layer.build(window.shape, known.shape)
    season, kernel, bias = weights = [random.normal(size=w.shape) for w in layer.weights]
    layer.set_weights(weights)
    expected = np.zeros((B, H, C))
    for row in range(B):
        for target in range(C):

            def of_season(step, row=row, w=season[target]):
                p = phase[row, step]
                terms = [covariate[row, step], np.sin(p), np.cos(p), np.sin(2 * p), np.cos(2 * p)]
                return sum(weight * term for weight, term in zip(w, terms))

            for step in range(H):
                value = bias[target, step] + of_season(S + step)
                for past in range(S):
                    left = window[row, past, target] - of_season(past)
                    value += kernel[target, past, step] * left
                expected[row, step, target] = value
    close(layer(window, known), expected, 1e-5)


def test_without_anything_known_it_is_a_linear_map():
    random = np.random.default_rng(1)
    layer = LinearForecast(H)
    window = random.normal(size=(B, S, 3))
    close(layer(window), np.zeros((B, H, 1)), 0)
    _, kernel, bias = weights = [random.normal(size=weight.shape) for weight in layer.weights]
    layer.set_weights(weights)
    close(layer(window)[..., 0], window[..., 0] @ kernel[0] + bias[0], 1e-5)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_waves_are_sines_and_cosines_of_multiples(order):
    angle = np.linspace(-7, 7, 41)
    found = waves(np.sin(angle), np.cos(angle), order)
    expected = [wave(k * angle) for k in range(1, order + 1) for wave in (np.sin, np.cos)]
    assert len(found) == 2 * order
    for wave, numbers in zip(found, expected):
        np.testing.assert_allclose(wave, numbers, atol=1e-12)


def test_a_model_is_saved_with_its_weights_and_none_is_trained(tmp_path):
    random = np.random.default_rng(2)
    window, known, *_ = inputs(random)
    given = keras.Input(window.shape[1:]), keras.Input(known.shape[1:])
    layer = LinearForecast(**SIZES)
    model = keras.Model(given, layer(*given))
    layer.set_weights([random.normal(size=weight.shape) for weight in layer.weights])
    assert not layer.trainable_weights
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.layers[-1].get_config() == layer.get_config()
    close(again([window, known]), model([window, known]), 0)


@pytest.mark.parametrize(
    "arguments, window, known, message",
    [
        ({"horizon": 0}, None, None, "horizon must be a positive integer"),
        ({"horizon": 2, "orders": [1]}, None, None, "orders must be numbers of waves"),
        ({"horizon": 2}, (3, None, 2), None, "of a fixed length"),
        ({"horizon": 2, "num_targets": 3}, (3, 5, 2), None, "3 features at least"),
        (
            {"horizon": 2, "known": [1]},
            (3, 5, 2),
            (3, 3, 1),
            "known must have shape",
        ),
        ({"horizon": 2, "known": [1]}, (3, 5, 2), None, "known must have shape"),
    ],
)
def test_refusals(arguments, window, known, message):
    with pytest.raises(ValueError, match=message):
        LinearForecast(**arguments).build(window, known)
