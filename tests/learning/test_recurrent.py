"""What the recurrent layers promise: to learn, and to remember."""

import keras
import numpy as np
import pytest

from seqkeras.recurrent import GRU, LSTM, QRNN, SimpleRNN
from tests.learning import tasks


def share_remembered(layer_class, symbols=8):
    """Of 500 unseen sequences whose first symbol is asked for a hundred steps later.

    The layer starts from its own first weights, and trains on 150 batches of each length, the short
    ones first: no gradient comes through a hundred steps before a layer has learned to keep.

    Reference: Bengio et al. 2009 (curricula), https://doi.org/10.1145/1553374.1553380
    """
    keras.utils.set_random_seed(1)
    random, inputs = np.random.default_rng(1), keras.Input((None, symbols + 1))
    model = keras.Sequential([inputs, layer_class(8), keras.layers.Dense(symbols)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(0.01, clipnorm=1.0)
    model.compile(optimizer, loss, jit_compile=False)
    for length in (5, 10, 20, 40, 70, 100):
        inputs, labels = tasks.recall(150 * 32, length, random, symbols)
        model.fit(inputs, labels, batch_size=32, verbose=0, shuffle=False)
    inputs, labels = tasks.recall(500, 100, random, symbols)
    return np.mean(np.argmax(model.predict(inputs, verbose=0), axis=-1) == labels)


@pytest.mark.parametrize("layer_class", [GRU, LSTM, QRNN])
def test_gated_layers_learn_to_remember_for_a_hundred_steps(layer_class):
    assert share_remembered(layer_class) > 0.85


def test_simple_rnn_with_the_same_lessons_does_not():
    assert share_remembered(SimpleRNN) < 0.65
