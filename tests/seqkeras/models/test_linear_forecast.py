"""The linear forecaster against loops in float64."""

import numpy as np

from seqkeras.models import LinearForecast
from tests.arrays import close
from tests.refusals import refusals

B, S, H, C = 3, 7, 4, 2
KNOWN, ORDERS = [4, 2, 3], [3]  # a covariate, then the sine and the cosine of a cycle
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
                waves = [wave(k * p) for k in (1, 2, 3) for wave in (np.sin, np.cos)]
                terms = [covariate[row, step], *waves]
                return sum(weight * term for weight, term in zip(w, terms))

            for step in range(H):
                value = bias[target, step] + of_season(S + step)
                for past in range(S):
                    left = window[row, past, target] - of_season(past)
                    value += kernel[target, past, step] * left
                expected[row, step, target] = value
    close(layer(window, known), expected, 1e-5)
    assert not layer.trainable_weights


def test_without_anything_known_it_is_a_linear_map():
    random = np.random.default_rng(1)
    layer = LinearForecast(H)
    window = random.normal(size=(B, S, 3))
    close(layer(window), np.zeros((B, H, 1)), 0)
    _, kernel, bias = weights = [random.normal(size=weight.shape) for weight in layer.weights]
    layer.set_weights(weights)
    close(layer(window)[..., 0], window[..., 0] @ kernel[0] + bias[0], 1e-5)


def built(*shapes, horizon=2, **arguments):
    return lambda: LinearForecast(horizon, **arguments).build(*shapes)


test_what_does_not_fit_is_refused = refusals(
    (built(orders=[1]), "orders must be numbers of waves"),
    (built((3, None, 2)), "of a fixed length"),
    (built((3, 5, 2), num_targets=3), "3 features at least"),
    (built((3, 5, 2), (3, 3, 1), known=[1]), "known must have shape"),
    (built((3, 5, 2), known=[1]), "known must have shape"),
)
