"""The gated recurrent unit: equations, cell and layer."""

import keras
from keras import ops

from seqkeras.composites import Network
from seqkeras.recurrent.cell import GatedCell
from seqkeras.recurrent.rnn import Recurrent


def _step(inputs, recurrent, states, activation=ops.tanh, gate_activation=ops.sigmoid):
    """g = tanh(x_h + r * n);  h(t) = z * h(t-1) + (1 - z) * g"""
    [h] = states
    x_z, x_r, x_h = ops.split(inputs, 3, axis=-1)
    h_z, h_r, n = ops.split(recurrent, 3, axis=-1)
    z, r = gate_activation(x_z + h_z), gate_activation(x_r + h_r)
    g = activation(x_h + r * n)
    return [z * h + (1 - z) * g], [z, r, n, g, h]


def _gradients(gradients, saved):
    """Return gradients, where da is the gradient by the argument of a gate's sigmoid or tanh:

    da_z = dh(t) * (h(t-1) - g) * z (1 - z);     da_g = dh(t) * (1 - z) * (1 - g^2)
    da_r = da_g * n * r (1 - r);                 dn = da_g * r
    dh(t-1) = dh(t) * z + U_z^T da_z + U_r^T da_r + U_h^T dn
    """
    [dh], (z, r, n, g, h_before) = gradients, saved
    d_g = dh * (1 - z)
    da_g = d_g * (1 - g * g)
    gates = [d_g * z * (h_before - g), da_g * n * r * (1 - r), da_g]
    return gates, [dh * z]


def _recurrent_gradients(gates, saved):
    da_z, da_r, da_g = gates
    r = saved[1]
    return [da_z, da_r, da_g * r]


gru = Network(
    "gru",
    _step,
    _gradients,
    _recurrent_gradients,
    masked_gates=(1, 0, 0),  # with z = 1 a masked step keeps h
    masked_copies=(False,),
    fused="gru",
)


@keras.saving.register_keras_serializable("seqkeras")
class GRUCell(GatedCell):
    """One step of `GRU`.

    Args:
        units, options: as the other cells have them.
        reset_after: False: r(t) resets h(t-1) before its product, as in the paper, and there is one
            bias, (3U,). Such a cell runs step by step.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """

    network = gru

    def __init__(self, units, *args, reset_after=True, **options):
        super().__init__(units, *args, **options)
        self.reset_after = reset_after
        self.bias_rows = (2,) if reset_after else ()

    @property
    def is_composite(self):
        return super().is_composite and self.reset_after

    def _advance(self, inputs, h, recurrent_kernel, bias, states):
        if self.reset_after:
            return super()._advance(inputs, h, recurrent_kernel, bias, states)
        gates, candidate = ops.split(inputs, [2 * self.units], axis=-1)
        U, U_h = ops.split(recurrent_kernel, [2 * self.units], axis=-1)
        z, r = ops.split(self.recurrent_activation(gates + ops.matmul(h, U)), 2, axis=-1)
        g = self.activation(candidate + ops.matmul(r * h, U_h))
        return [z * states[0] + (1 - z) * g]

    @property
    def options(self):
        return {**super().options, "reset_after": self.reset_after}


@keras.saving.register_keras_serializable("seqkeras")
class GRU(Recurrent):
    """Gated recurrent unit, the reset gate applied after the matrix product.

        z = sigmoid(W_z x(t) + U_z h(t-1) + b_z)
        r = sigmoid(W_r x(t) + U_r h(t-1) + b_r)
        n = U_h h(t-1) + c_h
        g = tanh(W_h x(t) + b_h + r * n)
        h(t) = z * h(t-1) + (1 - z) * g

    Notation: the paper's z and r; its candidate is our g. The paper resets h before the product
    (`reset_after=False`); this is the form of cuDNN. Kernel (D, 3U), recurrent kernel (U, 3U) and
    bias (2, 3U), b and c, hold the gates in the order z, r, h.

    Args, call arguments, returns and errors: see `seqkeras.recurrent.rnn.Recurrent`.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """

    cell_class = GRUCell
