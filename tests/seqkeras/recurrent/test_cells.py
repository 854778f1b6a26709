import re

import keras
import numpy as np
import pytest

from seqkeras.recurrent import GRUCell, LSTMCell, SimpleRNNCell
from tests import references
from tests.arrays import close, floats, numbers
from tests.catalogue.case import B, D, U
from tests.catalogue.recurrent import CELLS

REFERENCES = {
    "SimpleRNNCell": references.rnn,
    "LSTMCell": references.lstm,
    "GRUCell": references.gru,
}


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case.name)
def test_a_cell_is_one_step_of_the_papers_formula(case):
    cell, inputs = case.build(), case.inputs()
    reference = REFERENCES[case.name]
    outputs, states = reference(
        inputs["inputs"][:, None], None, inputs["states"], cell.get_weights()
    )
    close(cell(**inputs), (outputs[:, 0], states))


@pytest.mark.parametrize("case", CELLS, ids=lambda case: case.name)
def test_the_first_state_is_zero(case):
    cell = case.make()
    close(cell.get_initial_state(B), [np.zeros((B, U))] * len(cell.state_size))
    assert cell.state_size == [U] * (2 if "LSTM" in case.name else 1)


def test_the_forget_gate_begins_open():
    cell = LSTMCell(3)
    cell.build((None, D))
    i, f, c, o = np.split(numbers(cell.bias), 4)
    assert np.all(f == 1)
    assert not np.any([i, c, o])


@pytest.mark.parametrize("units", [0, -3, 2.0, "5", None])
@pytest.mark.parametrize("cell_class", [SimpleRNNCell, LSTMCell, GRUCell])
def test_units_that_are_no_positive_integer_are_refused(cell_class, units):
    message = rf"^{cell_class.__name__}: units must be a positive integer; received {units!r}\.$"
    with pytest.raises(ValueError, match=message):
        cell_class(units)


@pytest.mark.parametrize("shape", [(B, 5, D), (D,)])
@pytest.mark.parametrize("cell_class", [SimpleRNNCell, LSTMCell, GRUCell])
def test_inputs_that_are_no_step_are_refused(cell_class, shape):
    cell = cell_class(U)
    message = (
        f"{cell_class.__name__}: inputs must have shape (batch, dim), one step; received {shape}. "
        "Loop over a sequence with seqkeras.recurrent.RNN."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        cell(floats(*shape), cell.get_initial_state(B))


def test_a_cell_runs_in_keras_own_loop():
    cell = LSTMCell(U)
    layer = keras.layers.RNN(cell, return_sequences=True)
    sequence = floats(B, 5, D)
    actual = layer(sequence)
    expected, _ = references.lstm(sequence, None, [np.zeros((B, U))] * 2, cell.get_weights())
    close(actual, expected)
