"""What the recurrent layers promise: to learn, to remember, to count."""

import keras
import numpy as np
import pytest

from seqkeras.recurrent import GRU, LSTM, QRNN, SimpleRNN
from tests.learning import tasks


def compiled(layers, shape, loss):
    """The layers as a model of inputs of that shape."""
    model = keras.Sequential([keras.Input(shape), *layers])
    model.compile(keras.optimizers.Adam(0.01, clipnorm=1.0), loss, jit_compile=False)
    return model


def trained(layers, inputs, labels, loss, epochs=1):
    """The layers as a model, trained on batches of 32."""
    model = compiled(layers, inputs.shape[1:], loss)
    model.fit(inputs, labels, batch_size=32, epochs=epochs, verbose=0, shuffle=False)
    return model


def share_right(model, inputs, labels):
    return np.mean(np.argmax(model.predict(inputs, verbose=0), axis=-1) == labels)


CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.fixture
def random():
    keras.utils.set_random_seed(1)
    return np.random.default_rng(1)


def share_remembered(layer, random, symbols=8):
    """Of 500 unseen sequences whose first symbol is asked for a hundred steps later.

    The layer starts from its own first weights, and trains on 150 batches of each length, the short
    ones first: no gradient comes through a hundred steps before a layer has learned to keep.

    Reference: Bengio et al. 2009 (curricula), https://doi.org/10.1145/1553374.1553380
    """
    model = compiled([layer, keras.layers.Dense(symbols)], (None, symbols + 1), CROSS_ENTROPY)
    for length in (5, 10, 20, 40, 70, 100):
        inputs, labels = tasks.recall(150 * 32, length, random, symbols)
        model.fit(inputs, labels, batch_size=32, verbose=0, shuffle=False)
    return share_right(model, *tasks.recall(500, 100, random, symbols))


@pytest.mark.parametrize("layer_class", [GRU, LSTM, QRNN])
def test_gated_layers_learn_to_remember_for_a_hundred_steps(layer_class, random):
    assert share_remembered(layer_class(8), random) > 0.85


def test_simple_rnn_with_the_same_lessons_does_not(random):
    assert share_remembered(SimpleRNN(8), random) < 0.65


@pytest.mark.parametrize("layer_class", [GRU, LSTM])
def test_gated_layers_add_the_marked_numbers(layer_class, random):
    inputs, sums = tasks.adding(3200, 20, random)
    model = trained([layer_class(32), keras.layers.Dense(1)], inputs, sums, "mse", epochs=4)
    inputs, sums = tasks.adding(500, 20, random)
    assert np.mean((model.predict(inputs, verbose=0)[:, 0] - sums) ** 2) < 0.03  # 1/6 for always 1


def test_an_lstm_tells_balanced_brackets_it_has_not_seen(random):
    token_ids, labels = tasks.brackets(3000, 16, random)
    known = set(map(bytes, token_ids[:2000]))
    unseen = np.array([bytes(row) not in known for row in token_ids])
    model = trained(
        [keras.layers.Embedding(2, 4), LSTM(24), keras.layers.Dense(2)],
        token_ids[:2000],
        labels[:2000],
        CROSS_ENTROPY,
        epochs=6,
    )
    assert share_right(model, token_ids[unseen], labels[unseen]) > 0.95
    assert unseen.sum() > 100
