import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.analysis.jacobians import jacobian_norms, step_jacobians
from seqkeras.recurrent import QRNN, GRUCell, LSTMCell, SimpleRNNCell
from tests.arrays import floats, numbers, randomize
from tests.autodiff import gradients_of

B, T, D, U = 2, 5, 3, 7
CELLS = {SimpleRNNCell: ["h"], LSTMCell: ["h", "c"], GRUCell: ["h"]}
every_cell = pytest.mark.parametrize("cell_class", CELLS)


def random_cell(cell_class):
    cell = cell_class(U, dtype="float64")
    cell.build((None, D))
    return randomize(cell)


def arguments(cell_class):
    """Inputs, and states of which none is zero."""
    states = [floats(B, U, seed=index).astype("float64") for index in range(len(CELLS[cell_class]))]
    return floats(B, T, D).astype("float64"), states


def run(cell, inputs, states):
    """All states behind the last step, side by side: (B, S)."""
    for t in range(inputs.shape[1]):
        _, states = cell(inputs[:, t], states)
    return ops.concatenate(states, axis=-1)


def jacobian(cell, inputs, states):
    """Of `run` by the states, row by row of the matrix, by autodiff: (B, S, S)."""
    rows = []
    for index in range(U * len(states)):

        def entry(states, index=index):
            return ops.sum(run(cell, inputs, list(states))[:, index])

        rows.append(np.concatenate(gradients_of(entry, states), axis=-1))
    return np.stack(rows, axis=1)


@every_cell
def test_the_jacobian_of_a_step_is_that_of_autodiff(cell_class):
    cell, (inputs, states) = random_cell(cell_class), arguments(cell_class)
    for t, actual in enumerate(np.moveaxis(step_jacobians(cell, inputs, states), 1, 0)):
        expected = jacobian(cell, inputs[:, t : t + 1], states)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)
        states = np.split(numbers(run(cell, inputs[:, t : t + 1], states)), len(states), axis=-1)


@every_cell
def test_the_norms_are_those_of_autodiff_through_many_steps(cell_class):
    cell, (inputs, states) = random_cell(cell_class), arguments(cell_class)
    norms = jacobian_norms(cell, inputs, states)
    assert list(norms) == CELLS[cell_class]
    for n in range(T + 1):
        before = numbers(run(cell, inputs[:, : T - n], states)) if n < T else np.hstack(states)
        matrices = jacobian(cell, inputs[:, T - n :], np.split(before, len(states), axis=-1))
        for index, name in enumerate(norms):
            rows = slice(index * U, (index + 1) * U)
            for row in range(B):
                largest = np.linalg.svd(matrices[row, rows, rows])[1][0]
                np.testing.assert_allclose(norms[name][row, n], largest, rtol=1e-12)


@every_cell
def test_the_states_start_at_zero(cell_class):
    cell, (inputs, states) = random_cell(cell_class), arguments(cell_class)
    zeros = [np.zeros((B, U))] * len(states)
    for name, norms in jacobian_norms(cell, inputs).items():
        np.testing.assert_array_equal(norms, jacobian_norms(cell, inputs, zeros)[name])
        assert not np.allclose(norms, jacobian_norms(cell, inputs, states)[name])


@pytest.mark.parametrize("window, pooling", [(1, "f"), (2, "fo"), (3, "ifo")])
@pytest.mark.parametrize("starts_at_zero", [False, True])
def test_the_norms_of_a_qrnn_are_those_of_autodiff(window, pooling, starts_at_zero):
    layer = QRNN(U, window=window, pooling=pooling, return_state=True, dtype="float64")
    layer.build((None, None, D))
    randomize(layer)
    inputs, c = (floats(*shape).astype("float64") for shape in ((B, T, D), (B, U)))
    before = floats(B, window - 1, D).astype("float64") * (not starts_at_zero)
    rest = [before] if window > 1 else []

    def final(states, index):
        _, last, *_ = layer(inputs, initial_state=[*states, *rest])
        return ops.sum(last[:, index])

    rows = [gradients_of(lambda c, i=index: final(c, i), [c])[0] for index in range(U)]
    expected = np.linalg.norm(np.stack(rows, axis=1), ord=2, axis=(1, 2))
    norms = jacobian_norms(layer, inputs, None if starts_at_zero else [c, *rest])
    assert list(norms) == ["c"]
    np.testing.assert_allclose(norms["c"][:, T], expected, rtol=1e-12)


def test_other_cells_are_refused():
    message = r"^jacobian_norms: cell must be a SimpleRNNCell, .*; received <Dense name=other"
    with pytest.raises(ValueError, match=message):
        jacobian_norms(keras.layers.Dense(3, name="other"), floats(B, T, D))
