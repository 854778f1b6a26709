"""Recursive networks, one node at a time: a node asks its children, and they theirs."""

import numpy as np

from tests.references.recurrent import sigmoid


def _over_nodes(step, features, children):
    """The states of every node: lists of (U,) arrays by row and place."""

    def states_of(row, place):
        below = [states_of(row, child) for child in children[row, place] if child >= 0]
        return step(features[row, place], below)

    rows, places = features.shape[:2]
    states = [[states_of(row, place) for place in range(places)] for row in range(rows)]
    return tuple(np.array(each) for each in np.moveaxis(np.array(states), 2, 0))


def tree_rnn(weights, features, children, levels):
    """Socher et al. 2011, section 3.2, with an input at every node."""
    kernel, bias, recurrent_kernel = weights
    units = len(bias)
    blocks = recurrent_kernel.reshape(-1, units, units)

    def step(x, below):
        a = bias + kernel.T @ x
        for U, [h] in zip(blocks, below):
            a = a + U.T @ h
        return [np.tanh(a)]

    return _over_nodes(step, features, children)


def child_sum_tree_lstm(weights, features, children, levels):
    """Tai et al. 2015, equations 2 to 8."""
    kernel, bias, recurrent_kernel = weights
    W_i, W_f, W_u, W_o = np.split(kernel.T, 4)
    b_i, b_f, b_u, b_o = np.split(bias, 4)
    U_i, U_f, U_u, U_o = np.split(recurrent_kernel.T, 4)

    def step(x, below):
        h_sum = sum((h for h, _ in below), np.zeros(len(b_i)))
        i = sigmoid(W_i @ x + U_i @ h_sum + b_i)
        o = sigmoid(W_o @ x + U_o @ h_sum + b_o)
        u = np.tanh(W_u @ x + U_u @ h_sum + b_u)
        c = i * u
        for h_k, c_k in below:
            c = c + sigmoid(W_f @ x + U_f @ h_k + b_f) * c_k
        return [o * np.tanh(c), c]

    return _over_nodes(step, features, children)


def binary_tree_lstm(weights, features, children, levels):
    """Tai et al. 2015, equations 9 to 14, for N = 2."""
    kernel, bias, recurrent_kernel = weights
    W_i, W_f, W_u, W_o = np.split(kernel.T, 4)
    b_i, b_f, b_u, b_o = np.split(bias, 4)
    units = len(b_i)
    left, right = (np.split(half.T, 5) for half in np.split(recurrent_kernel, 2))

    def step(x, below):
        (h_l, c_l), (h_r, c_r) = below or [(np.zeros(units), np.zeros(units))] * 2
        i, f_l, f_r, u, o = (U_l @ h_l + U_r @ h_r for U_l, U_r in zip(left, right))
        c = sigmoid(W_i @ x + i + b_i) * np.tanh(W_u @ x + u + b_u)
        c = c + sigmoid(W_f @ x + f_l + b_f) * c_l + sigmoid(W_f @ x + f_r + b_f) * c_r
        return [sigmoid(W_o @ x + o + b_o) * np.tanh(c), c]

    return _over_nodes(step, features, children)


LAYERS = {"tree_rnn": tree_rnn, "child_sum": child_sum_tree_lstm, "binary": binary_tree_lstm}


def tree_classifier(token_ids, lengths, children, cell, embeddings, layer, output):
    """Tai et al. 2015, section 4.1: logits (B, N, V); a node of id 0 has no word.

    What is no node has the state zero. `layer` and `output` are lists of weights.
    """
    kernel, bias = output
    features = np.where(token_ids[..., None] > 0, embeddings[token_ids], 0)
    h = LAYERS[cell](layer, features, children, None)[0]
    real = np.arange(token_ids.shape[1]) < np.array(lengths)[:, None]
    return np.where(real[..., None], h, 0) @ kernel + bias
