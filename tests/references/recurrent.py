"""Recurrent networks, one row and one step at a time."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def doubles(x):
    """In float64, or in complex numbers of that precision."""
    return np.asarray(x, np.result_type(x, np.float64))


def rnn_step(x, h, kernel, recurrent_kernel, bias):
    """Elman 1990."""
    return [np.tanh(bias + kernel.T @ x + recurrent_kernel.T @ h)]


def lstm_step(x, h, c, kernel, recurrent_kernel, bias):
    """Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000."""
    a_i, a_f, a_c, a_o = np.split(kernel.T @ x + recurrent_kernel.T @ h + bias, 4)
    c = sigmoid(a_f) * c + sigmoid(a_i) * np.tanh(a_c)
    return [sigmoid(a_o) * np.tanh(c), c]


def gru_step(x, h, kernel, recurrent_kernel, bias, reset_after=True):
    """Cho et al. 2014; the paper resets h before the product, cuDNN the product itself."""
    W_z, W_r, W_h = np.split(kernel.T, 3)
    U_z, U_r, U_h = np.split(recurrent_kernel.T, 3)
    (b_z, b_r, b_h), (c_z, c_r, c_h) = (np.split(row, 3) for row in bias)
    z = sigmoid(W_z @ x + b_z + U_z @ h + c_z)
    r = sigmoid(W_r @ x + b_r + U_r @ h + c_r)
    reset = r * (U_h @ h + c_h) if reset_after else U_h @ (r * h) + c_h
    return [z * h + (1 - z) * np.tanh(W_h @ x + b_h + reset)]


def over_steps(step, sequence, mask, initial_states, reverse=False):
    """Outputs (B, T, U), zero where masked, and the list of final states (B, U).

    `step` takes x (D,) and the states, (U,) each, and returns the new states, the output first.
    """
    batch_size, length, _ = sequence.shape
    zero = np.zeros(initial_states[0].shape[-1])
    outputs = [[zero] * length for _ in range(batch_size)]
    finals = []
    for row in range(batch_size):
        states = [doubles(state)[row] for state in initial_states]
        for t in reversed(range(length)) if reverse else range(length):
            if mask is None or mask[row, t]:
                states = step(sequence[row, t], *states)
                outputs[row][t] = states[0]
        finals.append(states)
    return np.array(outputs), [np.array(each) for each in zip(*finals, strict=True)]


def _layer(step):
    def layer(sequence, mask, states, weights, reverse=False, **options):
        sequence, *weights = (doubles(each) for each in (sequence, *weights))
        return over_steps(
            lambda x, *states: step(x, *states, *weights, **options),
            sequence,
            mask,
            states,
            reverse,
        )

    return layer


rnn, lstm, gru = _layer(rnn_step), _layer(lstm_step), _layer(gru_step)


def bidirectional(layer, sequence, mask, states, forward_weights, backward_weights):
    """Schuster and Paliwal 1997; `states` are those of both directions, the forward ones first."""
    half = len(states) // 2
    forward, forward_states = layer(sequence, mask, states[:half], forward_weights)
    backward, backward_states = layer(sequence, mask, states[half:], backward_weights, reverse=True)
    return np.concatenate([forward, backward], axis=-1), [*forward_states, *backward_states]
