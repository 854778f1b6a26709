"""One step of a recurrence: `cell(inputs, states) -> (output, states)`, Keras's own protocol."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.shapes import require_positive


class Cell(keras.layers.Layer):
    """Base of the cells; a subclass names its gates, its states and its composite.

    Dropout draws one mask for a sequence and keeps it at every step (Gal and Ghahramani 2016), so
    it belongs to the loop: `run`, or a layer. A single step in training refuses it.

    Args:
        units: size of each state, U.
        dropout: share of the inputs that training sets to zero; the others grow by 1 / (1 - share).
        recurrent_dropout: the same for h(t-1) on its way into the gates.
        seed: of the dropout, an integer or None.

    Call arguments:
        inputs: (B, D), one step.
        states: list of (B, U), h first.

    Returns:
        (B, U) output, and the list of new states.

    Raises:
        ValueError: if units is not a positive integer, a share not from 0 to below 1, the inputs
            are not of rank 2, or a single step in training would have to drop something.

    Reference: dropout: Gal and Ghahramani 2016, section 4, https://arxiv.org/abs/1512.05287
    """

    num_gates: int
    num_states = 1

    def __init__(self, units, dropout=0.0, recurrent_dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        who = type(self).__name__
        require_positive(self, units=units)
        for name, share in (("dropout", dropout), ("recurrent_dropout", recurrent_dropout)):
            if not 0 <= share < 1:
                raise ValueError(
                    f"{who}: {name} must be at least 0 and below 1; received {share!r}."
                )
        self.units = units
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        self.drops = dropout > 0 or recurrent_dropout > 0
        if self.drops:
            self.seed_generator = keras.random.SeedGenerator(seed)

    @property
    def state_size(self):
        return [self.units] * self.num_states

    @property
    def output_size(self):
        return self.units

    def build(self, input_shape):
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__}: inputs must have shape (batch, dim), one step; received "
                f"{tuple(input_shape)}. Loop over a sequence with seqkeras.recurrent.RNN."
            )
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

    def run(self, sequence, mask, states, reverse=False, training=False):
        """The cell over a sequence (B, T, D), as a composite: outputs (B, T, U), final states."""
        dropout_mask = None
        if training and self.dropout:
            sequence = sequence * self._draw(sequence[:, 0], self.dropout)[:, None]
        if training and self.recurrent_dropout:
            dropout_mask = self._draw(states[0], self.recurrent_dropout)
        outputs, *states = type(self).composite(
            sequence, mask, *states, *self.weights_of_step(), dropout_mask, reverse=reverse
        )
        return outputs, states

    def _draw(self, like, share):
        return keras.random.dropout(ops.ones_like(like), share, seed=self.seed_generator)

    def weights_of_step(self):
        return [self.kernel, self.recurrent_kernel, self.bias]

    def call(self, inputs, states, training=False):
        if training and self.drops:
            raise ValueError(
                f"{type(self).__name__}: a single step has no dropout; received training=True. "
                "Loop with `run` or seqkeras.recurrent.RNN, which keep one mask for a sequence."
            )
        outputs, states = self.run(inputs[:, None], None, states)
        return outputs[:, 0], states

    def get_initial_state(self, batch_size):
        """Zeros for each state."""
        return [ops.zeros((batch_size, self.units), self.compute_dtype) for _ in self.state_size]


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNNCell(Cell):
    """One step of `seqkeras.composites.rnn`: h(t) = tanh(b + U x(t) + W h(t-1)).

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    num_gates = 1
    composite = staticmethod(composites.rnn)


@keras.saving.register_keras_serializable("seqkeras")
class LSTMCell(Cell):
    """One step of `seqkeras.composites.lstm`; states h and c; the forget bias starts at one.

    Reference: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735
    """

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
    """One step of `seqkeras.composites.gru`, the reset gate applied after the matrix product.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """

    num_gates = 3
    composite = staticmethod(composites.gru)

    def _add_bias(self, width):
        return self.add_weight(name="bias", shape=(2, width), initializer="zeros")
