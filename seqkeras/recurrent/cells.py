"""One step of a recurrence: `cell(inputs, states) -> (output, states)`, Keras's own protocol."""

import keras
from keras import ops

from seqkeras import composites


class Cell(keras.layers.Layer):
    """Base of the cells; a subclass names its gates, its states and its composite.

    Args:
        units: size of each state, U.

    Call arguments:
        inputs: (B, D), one step.
        states: list of (B, U), h first.

    Returns:
        (B, U) output, and the list of new states.

    Raises:
        ValueError: if units is not a positive integer.
    """

    num_gates: int
    num_states = 1

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(
                f"{type(self).__name__}: units must be a positive integer; received {units!r}."
            )
        self.units = units

    @property
    def state_size(self):
        return [self.units] * self.num_states

    def build(self, input_shape):
        width = self.num_gates * self.units
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], width), initializer="glorot_uniform"
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, width), initializer="orthogonal"
        )
        self.bias = self._add_bias(width)

    def _add_bias(self, width):
        return self.add_weight(name="bias", shape=(width,), initializer="zeros")

    def run(self, sequence, mask, states, reverse=False):
        """The cell over a sequence (B, T, D), as a composite: outputs (B, T, U), final states."""
        outputs, *states = type(self).composite(
            sequence, mask, *states, *self.weights_of_step(), reverse=reverse
        )
        return outputs, states

    def weights_of_step(self):
        return [self.kernel, self.recurrent_kernel, self.bias]

    def call(self, inputs, states):
        outputs, states = self.run(inputs[:, None], None, states)
        return outputs[:, 0], states

    def get_initial_state(self, batch_size):
        """Zeros for each state."""
        return [ops.zeros((batch_size, self.units), self.compute_dtype) for _ in self.state_size]


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNNCell(Cell):
    """One step of `seqkeras.composites.rnn`: h(t) = tanh(b + U x(t) + W h(t-1))."""

    num_gates = 1
    composite = staticmethod(composites.rnn)


@keras.saving.register_keras_serializable("seqkeras")
class LSTMCell(Cell):
    """One step of `seqkeras.composites.lstm`; states h and c; the forget bias starts at one."""

    num_gates = 4
    num_states = 2
    composite = staticmethod(composites.lstm)

    def _add_bias(self, width):
        def ones_for_the_forget_gate(shape, dtype=None):
            gate = ops.arange(shape[0]) // self.units
            return ops.cast(gate == 1, dtype)

        return self.add_weight(name="bias", shape=(width,), initializer=ones_for_the_forget_gate)


@keras.saving.register_keras_serializable("seqkeras")
class GRUCell(Cell):
    """One step of `seqkeras.composites.gru`, the reset gate applied after the matrix product."""

    num_gates = 3
    composite = staticmethod(composites.gru)

    def _add_bias(self, width):
        return self.add_weight(name="bias", shape=(2, width), initializer="zeros")
