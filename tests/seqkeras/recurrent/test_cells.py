import numpy as np
import pytest

from tests import references
from tests.arrays import close
from tests.catalogue.case import B, U
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
