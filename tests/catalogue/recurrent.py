"""Cells and the layers made of them."""

import functools

import keras

from seqkeras.recurrent import (
    GRU,
    LSTM,
    QRNN,
    RNN,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    StackedCells,
)
from seqkeras.recurrent.cell import GatedCell
from seqkeras.recurrent.rnn import Recurrent
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S, U, public_layers

DROPOUT = {"dropout": 0.3, "recurrent_dropout": 0.2, "seed": 5}  # which nothing but training sees
# What no composite computes, or could do without.
GENERAL = {
    "activation": "softsign",
    "use_bias": False,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "glorot_normal",
    "bias_initializer": "ones",
    **{f"{role}_regularizer": "l2" for role in ("kernel", "recurrent", "bias")},
    **{f"{role}_constraint": "max_norm" for role in ("kernel", "recurrent", "bias")},
}
GATED = {**GENERAL, "recurrent_activation": "hard_sigmoid", "use_cudnn": False, "implementation": 1}
OWN = {  # arguments that one cell alone has
    LSTMCell: {"unit_forget_bias": False},
    GRUCell: {"reset_after": False},
}


def general(cell_class):
    """Return arguments that are not the defaults of a cell."""
    options = GATED if issubclass(cell_class, GatedCell) else GENERAL
    return {**options, **OWN.get(cell_class, {})}


def stacked_cells():
    return StackedCells([LSTMCell(U), SimpleRNNCell(13), GRUCell(17)])


def step_inputs(*sizes):
    states = [floats(B, size, seed=index) for index, size in enumerate(sizes)]
    return lambda: {"inputs": floats(B, D), "states": states}


def sequence_inputs():
    return {"sequences": floats(B, S, D), "mask": right_padded([5, 3], S)}


def sequence_case(name, make, **options):
    lengths = {"sequences": 1, "mask": 1}
    return Case(name, make, sequence_inputs, lengths, mask="mask", **options)


def of_each(name, past=(), **options):
    """Return a case of each layer of `LAYER_CLASSES`, whose class the name holds."""
    return [
        sequence_case(name.format(each.__name__), functools.partial(each, U, **options), past=past)
        for each in LAYER_CLASSES
    ]


def bidirectional_case(layer_class):
    def make():
        return Bidirectional(layer_class(U, return_sequences=True, return_state=True))

    return sequence_case(f"Bidirectional({layer_class.__name__})", make)


def cell_case(cell_class, suffix="", **options):
    sizes = [U] * len(cell_class.network.masked_copies)
    name = f"{cell_class.__name__}{suffix}"
    return Case(name, lambda: cell_class(U, **options), step_inputs(*sizes))


def general_case(layer_class):
    def make():
        options = general(layer_class.cell_class)
        return layer_class(U, **options, unroll=True, return_sequences=True)

    return sequence_case(f"{layer_class.__name__}, general", make, past=("sequences",))


# The layers of one cell. A new one of `seqkeras.recurrent` is among them, and so is its cell.
LAYER_CLASSES = [each for each in public_layers().values() if issubclass(each, Recurrent)]
CELL_CLASSES = {each.cell_class.network.name: each.cell_class for each in LAYER_CLASSES}
CELLS = [cell_case(each, **DROPOUT) for each in CELL_CLASSES.values()]
GENERAL_CELLS = [cell_case(each, ", general", **general(each)) for each in CELL_CLASSES.values()]
STACKED = Case("StackedCells", stacked_cells, step_inputs(U, U, 13, 17))
# They return the outputs of all steps, in the order of the inputs, and the states.
RECURRENT = [
    *of_each("{}", return_sequences=True, return_state=True, **DROPOUT),
    sequence_case(
        "RNN(StackedCells)", lambda: RNN(stacked_cells(), return_sequences=True, return_state=True)
    ),
]
BIDIRECTIONAL_NODES = [bidirectional_case(each) for each in LAYER_CLASSES]  # one composite each
BIDIRECTIONAL = [
    *BIDIRECTIONAL_NODES,
    sequence_case(
        "Bidirectional(RNN(StackedCells))",
        lambda: Bidirectional(RNN(stacked_cells(), return_sequences=True, return_state=True)),
    ),
]
CASES = [
    *CELLS,
    *GENERAL_CELLS,
    STACKED,
    *RECURRENT,
    *of_each("{}, forwards", ("sequences",), return_sequences=True),
    *of_each("{}, backwards", return_state=True, go_backwards=True),
    *of_each("{}, last output"),
    sequence_case("RNN, backwards", lambda: RNN(GRUCell(U), return_state=True, go_backwards=True)),
    sequence_case(
        "RNN(Keras's cell)",
        lambda: RNN(keras.layers.LSTMCell(U), return_sequences=True),
        past=("sequences",),
    ),
    *BIDIRECTIONAL,
    *(general_case(each) for each in LAYER_CLASSES),
    sequence_case(
        "GRU, general, backwards",
        lambda: GRU(U, **general(GRUCell), unroll=True, go_backwards=True),
    ),
    *of_each(
        "{}, outputs repeated", ("sequences",), return_sequences=True, zero_output_for_mask=False
    ),
    sequence_case(
        "RNN, outputs repeated",
        lambda: RNN(GRUCell(U), return_sequences=True, zero_output_for_mask=False),
        past=("sequences",),
    ),
    sequence_case("RNN, unrolled", lambda: RNN(keras.layers.GRUCell(U), unroll=True)),
    sequence_case(
        "Bidirectional, with a backward layer",
        lambda: Bidirectional(LSTM(U), "ave", GRU(U, reset_after=False, go_backwards=True)),
    ),
    sequence_case("Bidirectional, last outputs", lambda: Bidirectional(GRU(U))),
    sequence_case(
        "Bidirectional(Keras's cell), last outputs",
        lambda: Bidirectional(RNN(keras.layers.GRUCell(U), return_state=True)),
    ),
]
# What they give depends on the call before, so that no property can be asked of them.
STATEFUL = [
    *of_each("{}, stateful", stateful=True),
    sequence_case("RNN, stateful", lambda: RNN(GRUCell(U), stateful=True)),
    sequence_case("QRNN, stateful", lambda: QRNN(U, stateful=True)),
    sequence_case("Bidirectional, stateful", lambda: Bidirectional(GRU(U, stateful=True))),
]
