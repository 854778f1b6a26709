"""Long short-term memory."""

from keras import ops

from seqkeras.composites.cudnn import fused
from seqkeras.composites.nodes import composite
from seqkeras.composites.recurrent import Equations, keras_lstm, recurrence


@composite
def lstm(
    sequence,
    mask,
    initial_state,
    initial_cell,
    kernel,
    recurrent_kernel,
    bias,
    dropout_mask=None,
    *,
    reverse=False,
):
    """Long short-term memory over a sequence.

        i, f, o = sigmoid(W x(t) + U h(t-1) + b), each with its own W, U, b
        g = tanh(W x(t) + U h(t-1) + b)
        c(t) = f * c(t-1) + i * g
        h(t) = o * tanh(c(t))

    and backwards, where da is the gradient by the argument of a gate's sigmoid or tanh:

        dc(t) += dh(t) * o * (1 - tanh(c(t))^2);   dc(t-1) = dc(t) * f
        da_i = dc(t) * g * i (1 - i);        da_f = dc(t) * c(t-1) * f (1 - f)
        da_g = dc(t) * i * (1 - g^2);        da_o = dh(t) * tanh(c(t)) * o (1 - o)

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state, initial_cell: (B, U), h(0) and c(0).
        kernel: (D, 4U), recurrent_kernel: (U, 4U), bias: (4U,), in the order i, f, g, o.
        dropout_mask: (B, U) factors of h(t-1) in its product, the same at every step, or None.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the final h and c, (B, U) each.

    Reference: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735; forget
        gate: Gers et al. 2000, https://doi.org/10.1162/089976600300015015
    """
    states, weights = [initial_state, initial_cell], [kernel, recurrent_kernel, bias]
    found = None
    if dropout_mask is None:
        found = fused(keras_lstm, sequence, mask, states, weights, reverse)
    outputs, [h, c] = found or recurrence(
        EQUATIONS, sequence, mask, states, weights, dropout_mask=dropout_mask, reverse=reverse
    )
    return outputs, h, c


def _step(inputs, recurrent, states):
    _, c_before = states
    i, f, g, o = ops.split(inputs + recurrent, 4, axis=-1)
    i, f, g, o = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
    c = f * c_before + i * g
    tanh_c = ops.tanh(c)
    return [o * tanh_c, c], [i, f, g, o, c_before, tanh_c]


def _gradients(gradients, saved):
    dh, dc = gradients
    i, f, g, o, c_before, tanh_c = saved
    dc = dc + dh * o * (1 - tanh_c * tanh_c)
    gates = [
        dc * g * i * (1 - i),
        dc * c_before * f * (1 - f),
        dc * i * (1 - g * g),
        dh * tanh_c * o * (1 - o),
    ]
    return gates, [None, dc * f]


# A masked step with i = 0 and f = 1 keeps c by itself.
EQUATIONS = Equations(_step, _gradients, held=(-1, 1, 0, 0), kept=(True, False))
