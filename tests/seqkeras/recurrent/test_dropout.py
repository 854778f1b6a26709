"""Dropout over time: one mask for all steps of a sequence, in training only."""

import keras
import numpy as np
import pytest

from seqkeras.recurrent import GRU, LSTM, QRNN, RNN, Bidirectional, GRUCell, LSTMCell, StackedCells
from tests.arrays import close, floats, numbers
from tests.catalogue.case import B, D, S, U
from tests.refusals import refusals
from tests.seqkeras.recurrent.rivals import LAYERS, built, every_layer

RATE = 0.4


def linear_sums(layer, length):
    """Weights under which SimpleRNN nearly adds up what it reads: tanh of small numbers."""
    layer.build((None, length, 1))
    layer.set_weights([np.full((1, 1), 1e-3), np.eye(1), np.zeros(1)])
    return layer


@every_layer
def test_nothing_is_dropped_but_in_training(name):
    layer_class, *_ = LAYERS[name]
    plain = built(layer_class(U, return_sequences=True))
    dropping = built(layer_class(U, return_sequences=True, dropout=RATE, recurrent_dropout=RATE))
    sequences = floats(B, S, D)
    close(dropping(sequences), plain(sequences))
    assert np.max(np.abs(numbers(dropping(sequences, training=True) - plain(sequences)))) > 0.01


def rows_that_differ(layer, rows=5003):
    """The outputs of many equal rows in training, (rows, S, units)."""
    return numbers(layer(np.ones((rows, S, 1), "float32"), training=True))


def test_inputs_are_dropped_at_all_steps_or_none_and_grow_to_the_same_mean():
    layer_class = LAYERS["SimpleRNN"][0]
    layer = linear_sums(layer_class(1, return_sequences=True, dropout=RATE, seed=3), S)
    outputs = rows_that_differ(layer)[:, :, 0] * 1e3  # 1 for each step that was read
    dropped = outputs[:, -1] == 0
    assert np.all(outputs[dropped] == 0)
    close(
        outputs[~dropped],
        np.broadcast_to(np.arange(1, S + 1) / (1 - RATE), (sum(~dropped), S)),
        rtol=1e-3,
    )
    assert abs(np.mean(dropped) - RATE) < 0.03


def test_states_are_dropped_at_all_steps_or_none_and_grow_to_the_same_mean():
    layer_class = LAYERS["SimpleRNN"][0]
    layer = linear_sums(layer_class(1, return_sequences=True, recurrent_dropout=RATE, seed=3), S)
    outputs = rows_that_differ(layer)[:, :, 0] * 1e3
    dropped = outputs[:, -1] < 1.5  # it never remembers: every step is the first
    close(outputs[dropped], np.ones((sum(dropped), S)), rtol=1e-3)
    kept = np.cumsum((1 - RATE) ** -np.arange(S))
    close(outputs[~dropped], np.broadcast_to(kept, (sum(~dropped), S)), rtol=1e-3)
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
        lambda: RNN(keras.layers.LSTMCell(U, recurrent_dropout=RATE)),
    ],
    ids=["LSTM", "QRNN", "QRNN, zoneout", "RNN(StackedCells)", "RNN(Keras's cell)"],
)
def test_both_directions_of_every_layer_drop(layer):
    layer = built(Bidirectional(layer()))
    sequences = floats(B, S, D)
    expected = numbers(layer(sequences))
    outputs = numbers(layer(sequences, training=True))
    for half in np.split(outputs - expected, 2, axis=-1):
        assert np.abs(half).max() > 0.001


def test_a_qrnn_drops_its_inputs_at_all_steps_or_none():
    layer = QRNN(1, 1, "f", dropout=RATE, seed=3, return_sequences=True)
    layer.build((None, S, 1))
    # z is small and linear, f is one half: the outputs of a row that is read rise to z.
    layer.set_weights([np.array([[[1e-3, 0.0]]]), np.zeros(2)])
    outputs = rows_that_differ(layer)[:, :, 0] * 1e3
    dropped = outputs[:, -1] == 0
    assert np.all(outputs[dropped] == 0)
    kept = (1 - 0.5 ** np.arange(1, S + 1)) / (1 - RATE)
    close(outputs[~dropped], np.broadcast_to(kept, (sum(~dropped), S)), rtol=1e-3)
    assert abs(np.mean(dropped) - RATE) < 0.03


@pytest.mark.parametrize(
    "cells",
    [
        lambda: [LSTMCell(U, dropout=RATE), GRUCell(U)],
        lambda: [LSTMCell(U), GRUCell(U, recurrent_dropout=RATE)],
        lambda: [keras.layers.LSTMCell(U, dropout=RATE), GRUCell(U)],
        lambda: keras.layers.GRUCell(U, recurrent_dropout=RATE),
    ],
    ids=["lower", "upper", "Keras's in a stack", "Keras's"],
)
def test_every_cell_of_a_loop_drops(cells):
    layer = built(RNN(cells()))
    sequences = floats(B, S, D)
    once = numbers(layer(sequences, training=True))
    assert not np.allclose(once, numbers(layer(sequences)))
    assert not np.allclose(once, numbers(layer(sequences, training=True)))


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
