"""Sequences, states and masks that no recurrent layer can take."""

import keras
import numpy as np

from seqkeras.recurrent import (
    GRU,
    LSTM,
    QRNN,
    RNN,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    SimpleRNNCell,
    StackedCells,
)
from tests.arrays import floats
from tests.catalogue.case import B, D, S, U
from tests.refusals import refusals

HOLD = "initial_state must hold"
SHAPES = f"{HOLD} tensors of shapes"


def of_states(layer, *shapes):
    return lambda: layer(floats(B, S, D), initial_state=[floats(*shape) for shape in shapes])


def with_mask(layer, mask):
    return lambda: layer(floats(B, S, D), mask=mask)


def both_ways(layer):
    return lambda: Bidirectional(layer)


def stateful():
    layer = QRNN(U, stateful=True)
    layer(floats(B, S, D))
    return layer


test_what_is_no_step_is_refused = refusals(
    *(
        (
            lambda cell=cell, shape=shape: cell(floats(*shape), cell.get_initial_state(B)),
            f"{type(cell).__name__}: inputs must have shape (batch, dim), one step; received "
            f"{shape}. Loop over a sequence with seqkeras.recurrent.RNN.",
        )
        for cell in (SimpleRNNCell(U), LSTMCell(U), GRUCell(U))
        for shape in [(B, 5, D), (D,)]
    )
)
test_initial_states_that_do_not_fit_are_refused = refusals(
    (of_states(LSTM(U), *[(B, U)] * 3), f"LSTM: {HOLD} 2 tensors; received 3."),
    (of_states(Bidirectional(QRNN(U)), (B, U)), f"Bidirectional: {HOLD} 4 tensors; received 1."),
    (of_states(QRNN(U, 1), *[(B, U)] * 3), f"QRNN: {HOLD} 1 tensors; received 3."),
    (of_states(QRNN(U, 2), (B, U)), f"QRNN: {HOLD} 2 tensors; received 1."),
    (of_states(LSTM(U), (B, U), (B, 12)), f"LSTM: {SHAPES} [(2, 11), ...received [(2, 11), (2, 12"),
    (of_states(SimpleRNN(U), (3, U)), f"SimpleRNN: {SHAPES} [(2, 11)]; received [(3"),
    (of_states(RNN([GRUCell(U), GRUCell(13)]), (B, U), (B, U)), f"{SHAPES} [(2, 11), (2, 13)]; re"),
    (
        of_states(RNN(keras.layers.GRUCell(U)), (B, 12)),
        f"RNN: {SHAPES} [(2, 11)]; received [(2, ",
    ),
    *(
        (
            of_states(Bidirectional(layer), (B, U), *[(B, 12)] * (2 * count - 1)),
            f"Bidirectional: {SHAPES} {2 * count * [(B, U)]}; received [(2, 11), ",
        )
        for layer, count in ((LSTM(U), 2), (QRNN(U, window=1), 1), (keras.layers.GRU(U), 1))
    ),
    *(
        (
            of_states(QRNN(U, window=3), *shapes),
            f"QRNN: {SHAPES} [(2, 11), (2, 2, 7)]; received {shapes}.",
        )
        for shapes in (
            [(B, 12), (B, 2, D)],
            [(B, U), (B, 3, D)],
            [(B, U), (B, 2, 8)],
            [(3, U), (3, 2, D)],
        )
    ),
    (of_states(Bidirectional(GRU(U)), (3, U), (3, U)), "shapes [(2, 11), (2, 11)]; received [(3,"),
)
test_masks_that_do_not_fit_are_refused = refusals(
    *(
        (with_mask(layer, mask), f"mask must have the shape (batch, length) of ... (2, 5); {came}")
        for layer in (LSTM(U), Bidirectional(LSTM(U)), QRNN(U))
        for mask, came in (
            ([[True] * S] * B, "received a list."),
            (np.ones((B, 1), bool), "received (2, 1)."),
            (np.ones((1, S), bool), "received (1, 5)."),
            (np.ones((B, S, 1), bool), "received (2, 5, 1)."),
        )
    )
)
WAY = "Bidirectional: layer must be a recurrent layer, such as ...go_backwards=False; received <"
test_layers_that_can_not_be_made_are_refused = refusals(
    (both_ways(GRU(U, return_sequences=True, go_backwards=True)), WAY),
    (both_ways(QRNN(U, go_backwards=True)), WAY),
    (both_ways(keras.layers.Dense(U)), WAY),
    (both_ways(GRUCell(U)), WAY),
    (both_ways(Bidirectional(GRU(U, return_sequences=True))), WAY),
    (lambda: StackedCells([]), "StackedCells: cells must be a list of at least one cell; received"),
    (lambda: StackedCells([LSTM]), "cells must be a list of at least one cell; received [<class"),
    (lambda: QRNN(U, pooling="of"), "QRNN: pooling must be one of ['f', 'fo', 'ifo']; received 'o"),
    (lambda: QRNN(U, zoneout=1), "QRNN: zoneout must be at least 0 and below 1; received 1."),
    (lambda: QRNN(U, dropout=-1), "QRNN: dropout must be at least 0 and below 1; received -1."),
    (lambda: QRNN(U, stateful=True).build((None, S, D)), "QRNN: a stateful layer must be built wi"),
    (lambda: stateful()(floats(3, S, D)), "QRNN: a stateful layer must be given batches of one si"),
)
