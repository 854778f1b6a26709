"""The gated recurrent unit."""

import keras
from keras import ops

from seqkeras.composites.cudnn import fused
from seqkeras.composites.nodes import composite
from seqkeras.composites.recurrent import Equations, keras_gru, recurrence


@composite
def gru(
    sequence,
    mask,
    initial_state,
    kernel,
    recurrent_kernel,
    bias,
    dropout_mask=None,
    *,
    reverse=False,
):
    """Gated recurrent unit over a sequence, the reset gate applied after the matrix product.

        z = sigmoid(W_z x(t) + U_z h(t-1) + b_z)
        r = sigmoid(W_r x(t) + U_r h(t-1) + b_r)
        n = U_h h(t-1) + c_h
        g = tanh(W_h x(t) + b_h + r * n)
        h(t) = z * h(t-1) + (1 - z) * g

    and backwards, where da is the gradient by the argument of a gate's sigmoid or tanh:

        da_z = dh(t) * (h(t-1) - g) * z (1 - z);     da_g = dh(t) * (1 - z) * (1 - g^2)
        da_r = da_g * n * r (1 - r);                 dn = da_g * r
        dh(t-1) = dh(t) * z + U_z^T da_z + U_r^T da_r + U_h^T dn

    Notation: the paper's z and r; its candidate is our g. The paper resets h before the product;
    this is the form of cuDNN and of Keras's `reset_after=True`.

    Args:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: (B, U).
        kernel: (D, 3U), recurrent_kernel: (U, 3U), in the order z, r, h.
        bias: (2, 3U), the biases of the inputs and of the state.
        dropout_mask: (B, U) factors of h(t-1) in its product, the same at every step, or None.
        reverse: from the last step to the first; outputs stay in the order of the inputs.

    Returns:
        (B, T, U) outputs, zero at masked steps, and the (B, U) final state.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """
    found = None
    if dropout_mask is None and keras.backend.backend() != "jax":  # whose loop is Keras's own
        weights = [kernel, recurrent_kernel, bias]
        found = fused(keras_gru, sequence, mask, [initial_state], weights, reverse)
    outputs, [h] = found or recurrence(
        EQUATIONS,
        sequence,
        mask,
        [initial_state],
        [kernel, recurrent_kernel, bias[0]],
        recurrent_bias=bias[1],
        dropout_mask=dropout_mask,
        reverse=reverse,
    )
    return outputs, h


def _step(inputs, recurrent, states):
    [h] = states
    x_z, x_r, x_h = ops.split(inputs, 3, axis=-1)
    h_z, h_r, n = ops.split(recurrent, 3, axis=-1)
    z, r = ops.sigmoid(x_z + h_z), ops.sigmoid(x_r + h_r)
    g = ops.tanh(x_h + r * n)
    return [z * h + (1 - z) * g], [z, r, n, g, h]


def _gradients(gradients, saved):
    [dh], (z, r, n, g, h_before) = gradients, saved
    d_g = dh * (1 - z)
    da_g = d_g * (1 - g * g)
    gates = [d_g * z * (h_before - g), da_g * n * r * (1 - r), da_g]
    return gates, [dh * z]


def _recurrent_gradients(gates, saved):
    da_z, da_r, da_g = gates
    r = saved[1]
    return [da_z, da_r, da_g * r]


# A masked step with z = 1 keeps h by itself.
EQUATIONS = Equations(_step, _gradients, _recurrent_gradients, held=(1, 0, 0), kept=(False,))
