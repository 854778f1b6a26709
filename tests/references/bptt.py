"""The loss of a simple recurrent network, one row and one step at a time, and its derivatives.

A derivative is the imaginary part of the loss at a number moved by a tiny imaginary step, exact to
rounding, for nothing is subtracted: Squire and Trapp 1998, https://doi.org/10.1137/S003614459631241X
"""

import numpy as np

TINY = 1e-100


def bptt_loss(W, U, V, b, c, inputs, initial_state, targets, weights, mask):
    """Goodfellow et al. 2016, equations 10.8 to 10.11 and 10.14: the sum over rows and steps."""
    total = 0
    for row in range(len(inputs)):
        h = initial_state[row]
        for t in range(inputs.shape[1]):
            if mask[row, t]:
                h = np.tanh(W @ inputs[row, t] + U @ h + b)
            o = c + V @ h
            y_hat = np.exp(o) / np.sum(np.exp(o))
            total = total - weights[row, t] * np.log(y_hat[targets[row, t]])
    return total


def bptt_gradients(values, targets, weights, mask):
    """Return the derivatives of `bptt_loss` by W, U, V, b, c, inputs and initial_state."""
    values = [each.astype(complex) for each in values]
    gradients = []
    for value in values:
        gradient = np.zeros(value.shape)
        for index in np.ndindex(value.shape):
            value[index] += 1j * TINY
            gradient[index] = bptt_loss(*values, targets, weights, mask).imag / TINY
            value[index] -= 1j * TINY
        gradients.append(gradient)
    return gradients
