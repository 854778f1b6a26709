"""Dropout over time: one mask for all steps of a sequence, in training only."""

import keras
import numpy as np
import pytest

from seqkeras.recurrent import (
    GRU,
    LSTM,
    QRNN,
    RNN,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    StackedCells,
)
from tests.arrays import close, floats, numbers
from tests.catalogue.case import B, D, S, U
from tests.refusals import refusals
from tests.seqkeras.recurrent.rivals import LAYERS, built, every_layer

RATE = 0.4


def sums(**options):
    """A SimpleRNN that nearly adds up what it reads: tanh of small numbers."""
    layer = SimpleRNN(1, **options)
    layer.build((None, S, 1))
    layer.set_weights([np.full((1, 1), 1e-3), np.eye(1), np.zeros(1)])
    return layer


def qrnn_of_small_sums(**options):
    """A QRNN whose z is small and linear and whose f is one half: outputs rise to z."""
    layer = QRNN(1, 1, "f", **options)
    layer.build((None, S, 1))
    layer.set_weights([np.array([[[1e-3, 0.0]]]), np.zeros(2)])
    return layer


@pytest.mark.parametrize(
    "make, rate, of_dropped, of_kept",
    [
        (sums, "dropout", np.zeros(S), np.arange(1, S + 1) / (1 - RATE)),
        # A state that is dropped remembers nothing: every step is the first.
        (sums, "recurrent_dropout", np.ones(S), np.cumsum((1 - RATE) ** -np.arange(S))),
        (qrnn_of_small_sums, "dropout", np.zeros(S), (1 - 0.5 ** np.arange(1, S + 1)) / (1 - RATE)),
    ],
)
def test_what_is_dropped_is_so_at_all_steps_or_none_and_the_mean_stays(
    make, rate, of_dropped, of_kept
):
    layer = make(return_sequences=True, seed=3, **{rate: RATE})
    rows = np.ones((5003, S, 1), "float32")
    outputs = numbers(layer(rows, training=True))[:, :, 0] * 1e3
    dropped = outputs[:, -1] < 1.5
    for part, expected in ((outputs[dropped], of_dropped), (outputs[~dropped], of_kept)):
        close(part, np.broadcast_to(expected, part.shape), rtol=1e-3)
    assert abs(np.mean(dropped) - RATE) < 0.03


@every_layer
def test_the_seed_decides_what_is_dropped_and_each_call_drops_anew(name):
    layer_class, *_ = LAYERS[name]
    options = {"dropout": RATE, "recurrent_dropout": RATE}
    first, same, other = (built(layer_class(U, seed=seed, **options)) for seed in (7, 7, 8))
    sequences = floats(B, S, D)
    once = numbers(first(sequences, training=True))
    close(same(sequences, training=True), once)
    assert not np.allclose(numbers(other(sequences, training=True)), once)
    assert not np.allclose(numbers(first(sequences, training=True)), once)


@pytest.mark.parametrize(
    "layer",
    [
        lambda: LSTM(U, dropout=RATE, recurrent_dropout=RATE),
        lambda: QRNN(U, dropout=RATE),
        lambda: QRNN(U, zoneout=RATE),
        lambda: RNN([LSTMCell(U, dropout=RATE), GRUCell(U)]),
        lambda: RNN([LSTMCell(U), GRUCell(U, recurrent_dropout=RATE)]),
        lambda: RNN([keras.layers.LSTMCell(U, dropout=RATE), GRUCell(U)]),
        lambda: RNN(keras.layers.LSTMCell(U, recurrent_dropout=RATE)),
    ],
)
def test_both_directions_of_every_layer_drop(layer):
    layer = built(Bidirectional(layer()))
    sequences = floats(B, S, D)
    expected = numbers(layer(sequences))
    once, again = (numbers(layer(sequences, training=True)) for _ in range(2))
    for difference in (once - expected, once - again):
        for half in np.split(difference, 2, axis=-1):
            assert np.abs(half).max() > 0.001


STEP = [floats(B, D), [floats(B, U)]]
test_what_can_not_drop_is_refused = refusals(
    (
        lambda: GRUCell(U, dropout=RATE)(*STEP, training=True),
        "GRUCell: a single step has no dropout; received training=True. Loop with `run` or seqk",
    ),
    (lambda: GRU(U, dropout=-0.1), "GRUCell: dropout must be at least 0 and below 1; received -0."),
    (lambda: GRU(U, recurrent_dropout=1), "recurrent_dropout must be at least 0 and below 1; rec"),
)


def test_a_stack_without_dropout_may_be_told_of_training():
    StackedCells([GRUCell(U), GRUCell(U)])(floats(B, D), [floats(B, U)] * 2, training=True)
