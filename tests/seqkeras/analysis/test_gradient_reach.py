"""Gradient norms against distance = the chain rule in loops; training moves them to what helps."""

import keras
import numpy as np
import pytest

from seqkeras.analysis import gradient_reach
from seqkeras.recurrent import SimpleRNN
from tests.arrays import close


def test_norms_are_those_of_the_chain_rule():
    random = np.random.default_rng(3)
    embedding, layer = keras.layers.Embedding(5, 7), SimpleRNN(3)
    symbols = random.integers(5, size=(2, 4))
    layer(embedding(symbols))
    directions = random.normal(size=(2, 3))
    W, U, b = (np.asarray(weight) for weight in layer.get_weights())
    e = np.asarray(embedding(symbols))
    norms = np.zeros((2, 4))
    for row in range(2):
        h, states = np.zeros(3), []
        for t in range(4):
            h = np.tanh(e[row, t] @ W + h @ U + b)
            states.append(h)
        dh = directions[row]
        for n in range(4):
            da = dh * (1 - states[3 - n] ** 2)
            norms[row, n] = np.sqrt(sum((W @ da) ** 2))
            dh = U @ da
    actual = gradient_reach.gradient_norms(embedding, layer, symbols, directions.astype("float32"))
    close(actual, np.sqrt(norms[0] * norms[1]), rtol=1e-4)


def test_only_the_first_symbol_is_of_use():
    symbols = gradient_reach.sequences(50, 4, np.random.default_rng(3))
    half = gradient_reach.SYMBOLS // 2
    assert set(symbols[:, 0]) == {*range(half)}
    assert set(symbols[:, 1:].ravel()) == {*range(half, 2 * half)}


@pytest.mark.long
def test_training_brings_the_gradient_to_the_first_symbol():
    measured = gradient_reach.measure(length=5, steps=150)
    for name, reach in measured.items():
        assert reach.right > 0.9, name
        assert reach.after[4] / reach.after[1] > reach.before[4] / reach.before[1], name
