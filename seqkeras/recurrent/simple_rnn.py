"""The simple recurrent network: equations, cell and layer."""

import keras
from keras import ops

from seqkeras.composites import Network
from seqkeras.recurrent.cell import Cell
from seqkeras.recurrent.rnn import Recurrent


def _step(inputs, recurrent, states, activation=ops.tanh):
    """h(t) = tanh(inputs + recurrent)"""
    h = activation(inputs + recurrent)
    return [h], [h]


def _gradients(gradients, saved):
    """da(t) = dh(t) * (1 - h(t)^2), for a(t), the argument of the tanh."""
    [dh], [h] = gradients, saved
    return [dh * (1 - h * h)], [None]


simple_rnn = Network("simple_rnn", _step, _gradients)


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNNCell(Cell):
    """One step of `SimpleRNN`.

    Args:
        units: size of each state, U.
        activation: activation of h(t), a name or a function. Default: "tanh".
        use_bias: whether b is added. Default: True.
        kernel_initializer, recurrent_initializer, bias_initializer: initializers of W, U and b.
        kernel_regularizer, recurrent_regularizer, bias_regularizer: regularizers of W, U and b, or
            None.
        kernel_constraint, recurrent_constraint, bias_constraint: constraints of W, U and b, or
            None.
        dropout, recurrent_dropout: dropout rates of x(t) and of h(t-1), at least 0 and below 1.
        seed: seed of the dropout, or None.

    Call arguments:
        inputs: (B, D), one step.
        states: [h(t-1)], (B, U).

    Returns:
        (B, U) output, and the list of new states, [h(t)].

    Raises:
        ValueError: if units is not a positive integer, a dropout is out of range, the inputs are
            not of rank 2, or training=True meets a dropout: one mask serves a whole sequence, so
            only `RNN` drops.

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import SimpleRNNCell
        >>> ones = {"kernel_initializer": "ones", "recurrent_initializer": "ones"}
        >>> cell = SimpleRNNCell(1, "linear", **ones)
        >>> output, [h] = cell(np.array([[1.0, 2.0]]), [np.array([[4.0]])])  # x(t) and h(t-1)
        >>> float(output[0, 0])
        7.0
    """

    network = simple_rnn


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNN(Recurrent):
    """Simple recurrent network.

        h(t) = tanh(W x(t) + U h(t-1) + b)

    Notation: W and U are the kernel and the recurrent kernel, transposed.

    Args:
        units: size of h, U.
        cell_arguments, options: the other arguments of `SimpleRNNCell` and of `RNN`, by the names
            that Keras's `SimpleRNN` has.

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

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import SimpleRNN
        >>> ones = {"kernel_initializer": "ones", "recurrent_initializer": "ones"}
        >>> layer = SimpleRNN(1, "linear", **ones)  # h(t) = x(t) + h(t-1), a sum
        >>> float(layer(np.array([[[1.0], [2.0], [4.0]]]))[0, 0])
        7.0
    """

    cell_class = SimpleRNNCell
