"""Cells and the layers made of them."""

from seqkeras.recurrent import (
    GRU,
    LSTM,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    SimpleRNNCell,
)
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S, U


def step_inputs(num_states):
    states = [floats(B, U, seed=index) for index in range(num_states)]
    return lambda: {"inputs": floats(B, D), "states": states}


def sequence_inputs():
    return {"sequence": floats(B, S, D), "mask": right_padded([5, 3], S)}


def sequence_case(name, make, **options):
    lengths = {"sequence": 1, "mask": 1}
    return Case(name, make, sequence_inputs, lengths, mask="mask", **options)


def recurrent_case(layer_class):
    def make():
        return layer_class(U, return_sequences=True, return_state=True, go_backwards=True)

    return sequence_case(layer_class.__name__, make)


def bidirectional_case(layer_class):
    def make():
        return Bidirectional(layer_class(U, return_sequences=True, return_state=True))

    return sequence_case(f"Bidirectional({layer_class.__name__})", make)


def forward_case(layer_class):
    def make():
        return layer_class(U, return_sequences=True)

    return sequence_case(f"{layer_class.__name__}, forwards", make, past=("sequence",))


def last_output_case(layer_class):
    return sequence_case(f"{layer_class.__name__}, last output", lambda: layer_class(U))


LAYER_CLASSES = (SimpleRNN, LSTM, GRU)
CELLS = [
    Case("SimpleRNNCell", lambda: SimpleRNNCell(U), step_inputs(1)),
    Case("LSTMCell", lambda: LSTMCell(U), step_inputs(2)),
    Case("GRUCell", lambda: GRUCell(U), step_inputs(1)),
]
RECURRENT = [recurrent_case(each) for each in LAYER_CLASSES]
BIDIRECTIONAL = [bidirectional_case(each) for each in LAYER_CLASSES]
CASES = [
    *CELLS,
    *RECURRENT,
    *(forward_case(each) for each in LAYER_CLASSES),
    *(last_output_case(each) for each in LAYER_CLASSES),
    *BIDIRECTIONAL,
]
