"""Quasi-recurrent networks and their recurrence, one row and one step at a time."""

import numpy as np

from tests.references.recurrent import doubles, sigmoid


def linear_recurrence(a, b, mask, initial_state, reverse=False):
    """h(t) = a(t) h(t-1) + b(t): outputs (B, T, U), zero where masked, and the final (B, U)."""
    outputs = np.zeros(a.shape)
    final = np.array(initial_state, np.float64)
    batch_size, length, _ = a.shape
    for row in range(batch_size):
        for t in reversed(range(length)) if reverse else range(length):
            if mask is None or mask[row, t]:
                final[row] = a[row, t] * final[row] + b[row, t]
                outputs[row, t] = final[row]
    return outputs, final


def qrnn_row(x, kernel, bias, pooling, c, history, keep=None):
    """Bradbury et al. 2016, sections 2 and 2.1, over one row of real steps.

    Args:
        x: (T, D).
        kernel: (k, D, G U), the banks side by side: z, f, o, i; its last tap meets x(t).
        bias: (G U,).
        pooling: "f", "fo" or "ifo".
        c: (U,), history: (k-1, D), what came before.
        keep: (T, U) booleans, False where zoneout sets the forget gate to one, or None.

    Returns:
        outputs (T, U), the last c and the last k-1 inputs.
    """
    k, units = len(kernel), len(c)
    seen = [*history, *x]
    outputs = np.zeros((len(x), units), np.result_type(*seen, kernel, bias, c))
    for t in range(len(x)):
        pre = bias + sum(kernel[tap].T @ seen[t + tap] for tap in range(k))
        z, f = np.tanh(pre[:units]), sigmoid(pre[units : 2 * units])
        if keep is not None:
            f = 1 - keep[t] * (1 - f)  # equation 6
        i = sigmoid(pre[3 * units :]) if pooling == "ifo" else 1 - f  # equation 5; 3 and 4
        c = f * c + i * z
        o = 1.0 if pooling == "f" else sigmoid(pre[2 * units : 3 * units])
        outputs[t] = o * c
    return outputs, c, np.array(seen[len(seen) - (k - 1) :]).reshape(history.shape)


def qrnn(sequences, mask, states, weights, pooling):
    """Right- or left-padded sequences (B, T, D): outputs, zero at masked steps; c; history."""
    kernel, bias = map(doubles, weights)
    dtype = np.result_type(np.float64, sequences, kernel, bias, *states)
    c, history = (np.array(each, dtype) for each in states)
    outputs = np.zeros((*sequences.shape[:2], c.shape[-1]), dtype)
    for row in range(len(sequences)):
        real = slice(None) if mask is None else mask[row]
        x = doubles(sequences[row, real])
        outputs[row, real], c[row], history[row] = qrnn_row(
            x, kernel, bias, pooling, c[row], history[row]
        )
    return outputs, c, history
