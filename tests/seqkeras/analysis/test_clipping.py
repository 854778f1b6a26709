import keras
import numpy as np
import pytest

from seqkeras.analysis.clipping import clip_by_norm, clip_by_value, descend, wall

GRADIENTS = [[3.0, -4.0, 0.1], [0.03, -0.04, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("clip, option", [(clip_by_norm, "clipnorm"), (clip_by_value, "clipvalue")])
def test_clipping_is_that_of_the_optimizers_of_keras(clip, option, gradient):
    variable = keras.Variable(np.zeros(3, "float32"))
    optimizer = keras.optimizers.SGD(learning_rate=1.0, **{option: 0.5})
    optimizer.apply([keras.ops.convert_to_tensor(np.array(gradient, "float32"))], [variable])
    np.testing.assert_allclose(clip(np.array(gradient), 0.5), -variable.numpy(), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_what_clipping_makes_of_overflow():
    def half(*numbers):
        return np.array(numbers, np.float16)

    np.testing.assert_array_equal(clip_by_norm(half(3e4, 4e4), np.float16(1)), [0, 0])
    np.testing.assert_array_equal(clip_by_norm(half(1, np.inf), np.float16(1)), [0, np.nan])
    np.testing.assert_array_equal(clip_by_value(half(1, np.inf, -np.inf), 0.5), [0.5, 0.5, -0.5])
    np.testing.assert_array_equal(clip_by_value(half(1, np.nan), 0.5), [0.5, np.nan])


def complex_wall(w, b):
    x = 0.5
    for _ in range(50):
        x = w / (1 + np.exp(-x)) + b
    return (1 / (1 + np.exp(-x)) - 0.7) ** 2


@pytest.mark.parametrize("w, b", [(4.8, -2.2), (4.6, -2.4), (2.0, 0.3)])
def test_the_gradient_at_the_wall_is_right(w, b):
    tiny = 1e-100j  # the complex step: exact to rounding
    expected = [
        complex_wall(w, b).real,
        complex_wall(w + tiny, b).imag / 1e-100,
        complex_wall(w, b + tiny).imag / 1e-100,
    ]
    np.testing.assert_allclose(wall(w, b), expected, rtol=1e-11)


def test_clipping_keeps_descent_at_the_wall():
    options = {"start": (4.8, -2.2), "learning_rate": 0.5, "steps": 300}
    runs = {
        "none": descend(lambda gradient: gradient, **options),
        "norm": descend(lambda gradient: clip_by_norm(gradient, 0.1), **options),
        "value": descend(lambda gradient: clip_by_value(gradient, 0.1), **options),
    }
    steps = {name: np.abs(np.diff(points, axis=0)) for name, (points, _) in runs.items()}
    assert steps["none"].max() > 1 and runs["none"][1][-100:].min() > 0.05
    assert np.hypot(*steps["norm"].T).max() < 0.5 * 0.1 + 1e-9
    assert runs["norm"][1][-100:].mean() < 0.01
    assert steps["value"].max() < 0.5 * 0.1 + 1e-9
    np.testing.assert_array_equal(runs["none"][0][0], (4.8, -2.2))
    assert [len(each) for each in runs["none"]] == [301, 301]
