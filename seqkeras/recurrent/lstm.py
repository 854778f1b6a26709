"""Long short-term memory: equations, cell and layer."""

import keras
from keras import initializers, ops

from seqkeras.composites import Network
from seqkeras.recurrent.cell import GatedCell
from seqkeras.recurrent.rnn import Recurrent


def _step(inputs, recurrent, states, activation=ops.tanh, gate_activation=ops.sigmoid):
    """c(t) = f * c(t-1) + i * g;  h(t) = o * tanh(c(t))"""
    _, c_before = states
    i, f, g, o = ops.split(inputs + recurrent, 4, axis=-1)
    i, f, o = gate_activation(i), gate_activation(f), gate_activation(o)
    g = activation(g)
    c = f * c_before + i * g
    tanh_c = activation(c)
    return [o * tanh_c, c], [i, f, g, o, c_before, tanh_c]


def _gradients(gradients, saved):
    """Return gradients, where da is the gradient by the argument of a gate's sigmoid or tanh:

    dc(t) += dh(t) * o * (1 - tanh(c(t))^2);   dc(t-1) = dc(t) * f
    da_i = dc(t) * g * i (1 - i);              da_f = dc(t) * c(t-1) * f (1 - f)
    da_g = dc(t) * i * (1 - g^2);              da_o = dh(t) * tanh(c(t)) * o (1 - o)
    """
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


lstm = Network(
    "lstm",
    _step,
    _gradients,
    masked_gates=(-1, 1, 0, 0),  # with i = 0 and f = 1 a masked step keeps c
    masked_copies=(True, False),
    fused="lstm",
)


@keras.saving.register_keras_serializable("seqkeras")
class LSTMCell(GatedCell):
    """One step of `LSTM`; states h and c.

    Args:
        units: size of each state, U.
        args: activation, of g and of c(t) on its way out, "tanh" by default; recurrent_activation,
            of i, f and o, "sigmoid" by default.
        unit_forget_bias: whether the forget bias starts at one, and not as the others.
        options: the other arguments of Keras's `LSTMCell`, by its names: use_bias; initializers,
            regularizers and constraints of kernel, recurrent kernel and bias; dropout and
            recurrent_dropout, at least 0 and below 1; seed.

    Call arguments:
        inputs: (B, D), one step.
        states: [h(t-1), c(t-1)], (B, U) each.

    Returns:
        (B, U) output, and the list of new states, [h(t), c(t)].

    Raises:
        ValueError: if units is not a positive integer, a dropout is out of range, the inputs are
            not of rank 2, or training=True meets a dropout: one mask serves a whole sequence, so
            only `RNN` drops.

    Reference: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import LSTMCell
        >>> cell = LSTMCell(1)
        >>> output, [h, c] = cell(np.ones((2, 3)), cell.get_initial_state(2))
        >>> cell.get_weights()[2].tolist()  # the bias of i, f, g, o
        [0.0, 1.0, 0.0, 0.0]
    """

    network = lstm

    def __init__(self, units: int, *args, unit_forget_bias: bool = True, **options):
        super().__init__(units, *args, **options)
        self.unit_forget_bias = unit_forget_bias

    def _bias_initializer(self):
        initializer = super()._bias_initializer()
        if not self.unit_forget_bias:
            return initializer

        def ones_for_the_forget_gate(shape, dtype=None):
            drawn = initializers.get(initializer)(shape, dtype=dtype)
            return ops.where(ops.arange(shape[0]) // self.units == 1, ops.ones_like(drawn), drawn)

        return ones_for_the_forget_gate

    @property
    def options(self):
        return {**super().options, "unit_forget_bias": self.unit_forget_bias}


@keras.saving.register_keras_serializable("seqkeras")
class LSTM(Recurrent):
    """Long short-term memory.

        i, f, o = sigmoid(W x(t) + U h(t-1) + b), each with its own W, U, b
        g = tanh(W x(t) + U h(t-1) + b)
        c(t) = f * c(t-1) + i * g
        h(t) = o * tanh(c(t))

    Notation: kernel (D, 4U), recurrent kernel (U, 4U) and bias (4U,) hold the gates in the order
    i, f, g, o. The states are h and c.

    Args:
        units: size of h and of c, U.
        cell_arguments, options: the other arguments of `LSTMCell` and of `RNN`, by the names that
            Keras's `LSTM` has.

    Call arguments:
        sequences: (B, T, D).
        initial_state: [h(0), c(0)], (B, U) each, or None for zeros.
        mask: (B, T) booleans, True for real steps, or None. A masked step keeps the state.
        training: whether dropout drops.

    Returns:
        (B, T, U) with `return_sequences`, zero at masked steps; else (B, U), the output of the last
        real step; with `return_state` a tuple of that and h(T) and c(T), (B, U) each.

    Raises:
        ValueError: if an argument of the cell is out of range, the sequences are not of rank 3 or
            have no step, or an initial state or the mask has another shape than above.

    Reference: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735; forget
        gate: Gers et al. 2000, https://doi.org/10.1162/089976600300015015

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import LSTM
        >>> layer = LSTM(3, return_sequences=True, return_state=True)
        >>> outputs, h, c = layer(np.ones((2, 5, 4)))
        >>> tuple(outputs.shape), tuple(h.shape), tuple(c.shape)
        ((2, 5, 3), (2, 3), (2, 3))
    """

    cell_class = LSTMCell
