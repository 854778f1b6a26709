"""Jacobians of a recurrent state by the state some steps earlier.

    ds(T)/ds(t) = J(T) J(T-1) ... J(t+1)        J(t) = ds(t)/ds(t-1)

s is the state of a cell: h, or c, or both. J(t) is derived for each cell from its formula in
`seqkeras.composites`, in NumPy and float64, so that nothing here needs autodiff or overflows early.

Reference: Bengio et al. 1994, https://doi.org/10.1109/72.279181; Pascanu et al. 2013, section 2,
https://arxiv.org/abs/1211.5063
"""

from collections.abc import Sequence

import keras
import numpy as np


def jacobian_norms(
    cell: keras.layers.Layer, inputs: np.ndarray, initial_state: Sequence[np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Return norms of dh(T)/dh(T-n); for an LSTM also of dc(T)/dc(T-n), for a QRNN only of that.

    Args:
        cell: a built SimpleRNNCell, LSTMCell, GRUCell or QRNN of `seqkeras.recurrent`.
        inputs: (B, T, D).
        initial_state: list of the cell's states, or None for zeros.

    Returns:
        state name -> (B, T + 1) array whose column n is the norm (the largest singular value) for
        n steps; column 0 is one. Both states of an LSTM may carry a change on from T-n.

    Raises:
        ValueError: if the cell is another one.

    Reference: Pascanu et al. 2013, section 2, https://arxiv.org/abs/1211.5063

    Example:
        >>> import numpy as np
        >>> from seqkeras.analysis import jacobian_norms
        >>> from seqkeras.recurrent import SimpleRNNCell
        >>> cell = SimpleRNNCell(1)
        >>> cell.build((None, 3))
        >>> _ = cell.recurrent_kernel.assign([[0.5]])
        >>> jacobian_norms(cell, np.zeros((1, 3, 3)))["h"].tolist()  # halved by each step
        [[1.0, 0.5, 0.25, 0.125]]
    """
    jacobians = step_jacobians(cell, inputs, initial_state)
    names, _ = _formula(cell)
    units = jacobians.shape[-1] // len(names)
    product = np.broadcast_to(np.eye(jacobians.shape[-1]), jacobians[:, 0].shape)
    norms = {name: [] for name in names}
    for n in range(jacobians.shape[1] + 1):
        if n > 0:
            product = product @ jacobians[:, -n]
        for index, name in enumerate(names):
            rows = slice(index * units, (index + 1) * units)
            norms[name].append(np.linalg.norm(product[:, rows, rows], ord=2, axis=(1, 2)))
    return {name: np.stack(state_norms, axis=1) for name, state_norms in norms.items()}


def step_jacobians(cell, inputs, initial_state=None):
    """Return J(t) for t from 1 to T: (B, T, S, S) float64, S the width of all states side by side.

    `jacobian_norms` describes the arguments and errors.
    """
    names, step = _formula(cell)
    weights = [np.asarray(weight, np.float64) for weight in cell.get_weights()]
    inputs = np.asarray(inputs, np.float64)
    batch_size, length, width = inputs.shape
    window = getattr(cell, "window", 1)  # number of inputs of a step
    zeros = [np.zeros((batch_size, cell.units)) for _ in names]
    zeros += [np.zeros((batch_size, window - 1, width))] if window > 1 else []
    states = zeros if initial_state is None else initial_state
    states, before = states[: len(names)], states[len(names) :]
    seen = np.concatenate([*before, inputs], axis=1)
    jacobians = []
    for t in range(length):
        x = seen[:, t : t + window].reshape(batch_size, -1)
        states, jacobian = step(x, *states, *weights)
        jacobians.append(jacobian)
    return np.stack(jacobians, axis=1)


def simple_rnn_step(x, h, kernel, recurrent_kernel, bias):
    """dh(t)/dh(t-1) = diag(1 - h(t)²) U"""
    h = np.tanh(bias + x @ kernel + h @ recurrent_kernel)
    return [h], _rows(1 - h**2, recurrent_kernel.T)


def lstm_step(x, h, c, kernel, recurrent_kernel, bias):
    """Return the four blocks of d(h(t), c(t))/d(h(t-1), c(t-1)).

        dc(t)/dc(t-1) = diag(f)
        dc(t)/dh(t-1) = diag(c(t-1) f') U_f + diag(g i') U_i + diag(i g') U_g
        dh(t)/dc(t-1) = diag(o (1 - tanh² c(t))) dc(t)/dc(t-1)
        dh(t)/dh(t-1) = diag(o (1 - tanh² c(t))) dc(t)/dh(t-1) + diag(tanh c(t) o') U_o

    Notation: i' = i (1 - i), f' and o' alike, g' = 1 - g².
    """
    U_i, U_f, U_g, U_o = np.split(recurrent_kernel.T, 4)
    i, f, g, o = np.split(x @ kernel + h @ recurrent_kernel + bias, 4, axis=-1)
    i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
    before, c = c, f * c + i * g
    c_by_c = _rows(f, np.eye(f.shape[-1]))
    c_by_h = (
        _rows(before * f * (1 - f), U_f) + _rows(g * i * (1 - i), U_i) + _rows(i * (1 - g**2), U_g)
    )
    h_by_new_c = (o * (1 - np.tanh(c) ** 2))[..., None]
    h_by_h = h_by_new_c * c_by_h + _rows(np.tanh(c) * o * (1 - o), U_o)
    return [o * np.tanh(c), c], np.block([[h_by_h, h_by_new_c * c_by_c], [c_by_h, c_by_c]])


def gru_step(x, h, kernel, recurrent_kernel, bias):
    """Return the new state and dh(t)/dh(t-1): z keeps the state, other dependence is through z, g
    and r.

        dg/dh(t-1)    = diag(g') (diag(r) U_h + diag(q r') U_r)
        dh(t)/dh(t-1) = diag(z) + diag((h(t-1) - g) z') U_z + diag(1 - z) dg/dh(t-1)

    Notation: q = U_h h(t-1) + c_h, what r resets; z' = z (1 - z), r' alike, g' = 1 - g².
    """
    U_z, U_r, U_h = np.split(recurrent_kernel.T, 3)
    x_z, x_r, x_h = np.split(x @ kernel + bias[0], 3, axis=-1)
    h_z, h_r, q = np.split(h @ recurrent_kernel + bias[1], 3, axis=-1)
    z, r = _sigmoid(x_z + h_z), _sigmoid(x_r + h_r)
    g = np.tanh(x_h + r * q)
    g_by_h = _rows((1 - g**2) * r, U_h) + _rows((1 - g**2) * r * (1 - r) * q, U_r)
    jacobian = (
        _rows(z, np.eye(z.shape[-1]))
        + _rows((h - g) * z * (1 - z), U_z)
        + (1 - z)[..., None] * g_by_h
    )
    return [z * h + (1 - z) * g], jacobian


def qrnn_step(x, c, kernel, bias):
    """dc(t)/dc(t-1) = diag(f(t)), because f(t) depends on the inputs only."""
    units = c.shape[-1]
    pre = x @ kernel.reshape(x.shape[-1], -1) + bias
    return [c], _rows(_sigmoid(pre[:, units : 2 * units]), np.eye(units))


def _formula(cell):
    """Return the names of a cell's states, and its step: (x, *states, *weights) -> states, J."""
    # Keras is imported only when needed.
    from seqkeras.recurrent import QRNN, GRUCell, LSTMCell, SimpleRNNCell

    for cell_class, formula in (
        (SimpleRNNCell, (["h"], simple_rnn_step)),
        (LSTMCell, (["h", "c"], lstm_step)),
        (GRUCell, (["h"], gru_step)),
        (QRNN, (["c"], qrnn_step)),
    ):
        usual = getattr(cell, "is_composite", True) and getattr(cell, "use_bias", True)
        if isinstance(cell, cell_class) and usual:
            return formula
    raise ValueError(
        "jacobian_norms: cell must be a SimpleRNNCell, LSTMCell, GRUCell or QRNN of "
        "seqkeras.recurrent, with their own activations and a bias; received "
        f"{cell!r}."
    )


def _rows(scale, matrix):
    """Return diag(scale) matrix, for each row of a batch: (B, U), (U, V) -> (B, U, V)."""
    return scale[:, :, None] * matrix


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))
