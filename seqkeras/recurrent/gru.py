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
        units: size of each state, U.
        args: activation, of g, "tanh" by default; recurrent_activation, of z and r, "sigmoid" by
            default.
        reset_after: False: r(t) resets h(t-1) before its product, as in the paper, and there is one
            bias, (3U,). Such a cell runs step by step.
        options: the other arguments of Keras's `GRUCell`, by its names: use_bias; initializers,
            regularizers and constraints of kernel, recurrent kernel and bias; dropout and
            recurrent_dropout, at least 0 and below 1; seed.

    Call arguments:
        inputs: (B, D), one step.
        states: [h(t-1)], (B, U).

    Returns:
        (B, U) output, and the list of new states, [h(t)].

    Raises:
        ValueError: if units is not a positive integer, a dropout is out of range, the inputs are
            not of rank 2, or training=True meets a dropout: one mask serves a whole sequence, so
            only `RNN` drops.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import GRUCell
        >>> cell = GRUCell(4, reset_after=False)
        >>> output, [h] = cell(np.ones((2, 3)), cell.get_initial_state(2))
        >>> tuple(output.shape), tuple(cell.bias.shape)
        ((2, 4), (12,))
    """

    network = gru

    def __init__(self, units: int, *args, reset_after: bool = True, **options):
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

    Args:
        units: size of h, U.
        cell_arguments, options: the other arguments of `GRUCell` and of `RNN`, by the names that
            Keras's `GRU` has.

    Call arguments:
        sequences: (B, T, D).
        initial_state: [h(0)], (B, U), or None for zeros.
        mask: (B, T) booleans, True for real steps, or None. A masked step keeps the state.
        training: whether dropout drops.

    Returns:
        (B, T, U) with `return_sequences`, zero at masked steps; else (B, U), the output of the last
        real step; with `return_state` a tuple of that and h(T), (B, U).

    Raises:
        ValueError: if an argument of the cell is out of range, the sequences are not of rank 3 or
            have no step, or an initial state or the mask has another shape than above.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.recurrent import GRU
        >>> mask = np.array([[True, True, False]])
        >>> outputs = GRU(2, return_sequences=True)(np.ones((1, 3, 4)), mask=mask)
        >>> bool(ops.all(outputs[0, 2] == 0)), bool(ops.any(outputs[0, 1] == 0))  # masked, real
        (True, False)
    """

    cell_class = GRUCell
