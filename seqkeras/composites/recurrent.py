"""Recurrent networks over a whole sequence.

They take a padding mask. In Python any mask is right: a masked step keeps the state and its output
is zero. The fused operators know lengths only, so a node gets the lengths of a right-padded mask; a
row that is not right-padded gets the length -1, which ONNX Runtime refuses.

Weights follow Keras: gates in the order i, f, c, o (LSTM) and z, r, h (GRU, `reset_after`).
"""

from keras import ops
from keras.src.backend import rnn as keras_rnn  # its signature is held by a test

from seqkeras.composites.nodes import composite


@composite
def rnn(sequence, mask, initial_state, kernel, recurrent_kernel, bias, *, reverse=False):
    """Simple recurrent network over a sequence.

        h(t) = tanh(b + U x(t) + W h(t-1))

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: (B, U).
        kernel: (D, U), the U of the formula, transposed.
        recurrent_kernel: (U, U), its W, transposed.
        bias: (U,).
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the (B, U) final state.

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    def step(x, states):
        h = ops.tanh(x + ops.matmul(states[0], recurrent_kernel))
        return h, [h]

    outputs, [h] = _scan(step, ops.matmul(sequence, kernel) + bias, [initial_state], mask, reverse)
    return outputs, h


@composite
def lstm(
    sequence,
    mask,
    initial_state,
    initial_cell,
    kernel,
    recurrent_kernel,
    bias,
    *,
    reverse=False,
):
    """Long short-term memory over a sequence.

        i, f, o = sigmoid(W x(t) + U h(t-1) + b), each with its own W, U, b
        g = tanh(W x(t) + U h(t-1) + b)
        c(t) = f * c(t-1) + i * g
        h(t) = o * tanh(c(t))

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state, initial_cell: (B, U), h(0) and c(0).
        kernel: (D, 4U), recurrent_kernel: (U, 4U), bias: (4U,), in the order i, f, g, o.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the final h and c, (B, U) each.

    Reference: Hochreiter and Schmidhuber 1997; forget gate: Gers et al. 2000.
    """

    def step(x, states):
        h, c = states
        i, f, g, o = ops.split(x + ops.matmul(h, recurrent_kernel), 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        return h, [h, c]

    projected = ops.matmul(sequence, kernel) + bias
    outputs, [h, c] = _scan(step, projected, [initial_state, initial_cell], mask, reverse)
    return outputs, h, c


@composite
def gru(sequence, mask, initial_state, kernel, recurrent_kernel, bias, *, reverse=False):
    """Gated recurrent unit over a sequence, the reset gate applied after the matrix product.

        z = sigmoid(W_z x(t) + U_z h(t-1) + b_z)
        r = sigmoid(W_r x(t) + U_r h(t-1) + b_r)
        g = tanh(W_h x(t) + b_h + r * (U_h h(t-1) + c_h))
        h(t) = z * h(t-1) + (1 - z) * g

    Notation: the paper's z and r; its candidate is our g. The paper resets h before the product;
    this is the form of cuDNN and of Keras's `reset_after=True`.

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: (B, U).
        kernel: (D, 3U), recurrent_kernel: (U, 3U), in the order z, r, h.
        bias: (2, 3U), the biases of the inputs and of the state.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the (B, U) final state.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """

    def step(x, states):
        h = states[0]
        x_z, x_r, x_h = ops.split(x, 3, axis=-1)
        h_z, h_r, h_h = ops.split(ops.matmul(h, recurrent_kernel) + bias[1], 3, axis=-1)
        z = ops.sigmoid(x_z + h_z)
        r = ops.sigmoid(x_r + h_r)
        g = ops.tanh(x_h + r * h_h)
        h = z * h + (1 - z) * g
        return h, [h]

    projected = ops.matmul(sequence, kernel) + bias[0]
    outputs, [h] = _scan(step, projected, [initial_state], mask, reverse)
    return outputs, h


@composite
def bidirectional(sequence, mask, forward, backward, *, cell):
    """A recurrent composite and a second one that reads backwards, side by side.

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        forward, backward: lists of the other tensors that the composite takes: states, weights.
        cell: which composite, "rnn", "lstm" or "gru".

    Returns:
        (B, T, 2U) outputs [forward; backward], and the final states, the forward ones first.

    Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093
    """
    run = {"rnn": rnn, "lstm": lstm, "gru": gru}[cell]
    forward_outputs, *forward_states = run(sequence, mask, *forward)
    backward_outputs, *backward_states = run(sequence, mask, *backward, reverse=True)
    outputs = ops.concatenate([forward_outputs, backward_outputs], axis=-1)
    return outputs, *forward_states, *backward_states


def _scan(step, sequence, states, mask, reverse):
    """The loop over steps: (B, T, ·) outputs in the order of the inputs, and the final states."""
    if sequence.shape[1] == 1 and mask is None:
        output, states = step(sequence[:, 0], states)
        return output[:, None], states
    _, outputs, states = keras_rnn(
        step,
        sequence,
        states,
        mask=mask,
        go_backwards=reverse,
        zero_output_for_mask=True,
    )
    return (ops.flip(outputs, axis=1) if reverse else outputs), states
