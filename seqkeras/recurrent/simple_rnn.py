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

    Args, call arguments, returns and errors: see `seqkeras.recurrent.cell.Cell`.

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    network = simple_rnn


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNN(Recurrent):
    """Simple recurrent network.

        h(t) = tanh(W x(t) + U h(t-1) + b)

    Notation: W and U are the kernel and the recurrent kernel, transposed.

    Args, call arguments, returns and errors: see `seqkeras.recurrent.rnn.Recurrent`.

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    cell_class = SimpleRNNCell
