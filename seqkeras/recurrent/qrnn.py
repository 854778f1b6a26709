"""Quasi-recurrent network: convolutions over time, then a pooling that recurs.

Left out: dense connections between layers, and the attention of the paper's encoder-decoder; of
the arguments of `LSTM`, recurrent_dropout, whose form here is zoneout: no product reads h(t-1).
"""

import keras
from keras import ops

from seqkeras.composites import linear_recurrence
from seqkeras.recurrent.stacked import as_list
from seqkeras.shapes import (
    require_mask,
    require_positive,
    require_sequence,
    require_states,
    require_steps,
)
from seqkeras.values import without_padding

BANKS = {"f": "zf", "fo": "zfo", "ifo": "zfoi"}  # the convolutions of each pooling


@keras.saving.register_keras_serializable("seqkeras")
class QRNN(keras.layers.Layer):
    """Quasi-recurrent network: only the pooling recurs, and it is elementwise.

        z(t) = tanh(W_z [x(t-k+1) ... x(t)] + b_z)
        f(t), o(t), i(t) = sigmoid(W [x(t-k+1) ... x(t)] + b), each with its own W, b

        f:    h(t) = c(t) = f(t) * c(t-1) + (1 - f(t)) * z(t)
        fo:   h(t) = o(t) * c(t),    c as above
        ifo:  h(t) = o(t) * c(t),    c(t) = f(t) * c(t-1) + i(t) * z(t)

    and in training, with zoneout, f(t) = 1 - dropout(1 - f(t)), where dropout does not rescale: a
    channel that is dropped keeps its c (with "ifo" it adds i * z to it).

    Notation: the paper's letters; it has no biases, and names the state of f-pooling h.

    Args:
        units: size of the state, U.
        window: k, the number of steps that a convolution sees.
        pooling: "f", "fo" or "ifo".
        zoneout: share of the forget gates that training sets to one.
        return_sequences: return the output of every step, not only of the last real one.
        return_state: return the final states after the outputs.
        go_backwards: read from the last step to the first; as in Keras, the outputs (and the mask
            that leaves) are then in the order in which they were read.
        stateful: begin where the last batch ended; `reset_state()` begins at zeros again. The batch
            size must be fixed. The states are weights: a saved model continues where it was.
        dropout: share of the inputs that training sets to zero, the same ones at every step.
        seed: seed of zoneout and dropout, an integer or None.

    Call arguments:
        sequences: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None. A masked step keeps c, its output is
            zero, and a window that reaches it sees zeros.
        initial_state: [c (B, U), the last k-1 inputs (B, k-1, D)], the second for k > 1 only; None
            for zeros, or for the states kept.
        training: whether there is zoneout, and dropout drops.

    Returns:
        (B, T, U) with `return_sequences`, else (B, U), the output of the last real step; with
        `return_state` a tuple of that and the final states, in the form that `initial_state` takes.

    Raises:
        ValueError: if units or window is not a positive integer, the pooling is unknown, zoneout or
            dropout is not from 0 to below 1, the sequences are not of rank 3 or have no step, the
            mask has another shape than they, there are more or fewer initial states than the layer
            has or one of another shape, or a stateful layer gets a batch whose size is open or not
            that of the first one.

    `step` computes one step. `Bidirectional` takes this layer, and Keras's takes it too.

    Reference: Bradbury et al. 2017, sections 2 and 2.1, https://arxiv.org/abs/1611.01576; dropout:
    Gal and Ghahramani 2016, section 4, https://arxiv.org/abs/1512.05287

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import QRNN
        >>> layer = QRNN(3, window=2, return_state=True)
        >>> last, c, inputs = layer(np.ones((2, 5, 4)))
        >>> output, [c, inputs] = layer.step(np.ones((2, 4)), [c, inputs])  # the sixth step
        >>> tuple(output.shape), tuple(c.shape), tuple(inputs.shape)
        ((2, 3), (2, 3), (2, 1, 4))
    """

    states = None  # `keras.layers.Bidirectional` asks for it; a list once a stateful layer is built

    def __init__(
        self,
        units: int,
        window: int = 2,
        pooling: str = "fo",
        zoneout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(self, units=units, window=window)
        if pooling not in BANKS:
            raise ValueError(f"QRNN: pooling must be one of {list(BANKS)}; received {pooling!r}.")
        for name, share in (("zoneout", zoneout), ("dropout", dropout)):
            if not 0 <= share < 1:
                raise ValueError(
                    f"QRNN: {name} must be at least 0 and below 1; received {share!r}."
                )
        self.units = units
        self.window = window
        self.pooling = pooling
        self.zoneout = zoneout
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.dropout = dropout
        self.seed = seed
        if zoneout or dropout:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    @property
    def num_states(self):
        return 1 if self.window == 1 else 2

    def build(self, sequences_shape):
        require_sequence(self, sequences=sequences_shape)
        self.input_dim = sequences_shape[-1]
        width = len(BANKS[self.pooling]) * self.units
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.window, self.input_dim, width),  # as `keras.layers.Conv1D` has it
            initializer="glorot_uniform",
        )
        self.bias = self.add_weight(name="bias", shape=(width,), initializer="zeros")
        if self.stateful:
            if sequences_shape[0] is None:
                raise ValueError(
                    "QRNN: a stateful layer must be built with a fixed batch size; received "
                    f"sequences of shape {tuple(sequences_shape)}."
                )
            self.states = [
                self.add_weight(name=name, shape=shape, initializer="zeros", trainable=False)
                for name, shape in zip(("c", "history"), self.state_shapes(sequences_shape[0]))
            ]

    def call(self, sequences, mask=None, initial_state=None, training=False):
        require_sequence(self, sequences=sequences.shape)
        if initial_state is None:
            initial_state = self._first_state(sequences)
        initial_state = as_list(initial_state)
        require_steps(self, sequences=sequences)
        require_mask(self, mask, sequences.shape)
        require_states(self, initial_state, self.state_shapes("batch"), sequences.shape[0])
        if self.go_backwards:
            sequences, mask = ops.flip(sequences, axis=1), _flipped(mask)
        if training and self.dropout:
            kept = ops.ones_like(sequences[:, :1])
            factors = keras.random.dropout(kept, self.dropout, seed=self.seed_generator)
            sequences = sequences * factors
        outputs, states = self._run(sequences, mask, initial_state, training)
        if self.stateful:
            for kept, state in zip(self.states, states, strict=True):
                kept.assign(state)
        result = outputs if self.return_sequences else _last(outputs, mask)
        return (result, *states) if self.return_state else result

    def step(self, inputs, states):
        """Advance one step: inputs (B, D) and states as `call` takes them -> (B, U) output, new
        states."""
        inputs, *states = [ops.cast(given, self.compute_dtype) for given in (inputs, *states)]
        outputs, states = self._run(inputs[:, None], None, states, training=False)
        return outputs[:, 0], states

    def get_initial_state(self, batch_size):
        """Return zeros for each state; the layer must be built."""
        return [ops.zeros(shape, self.compute_dtype) for shape in self.state_shapes(batch_size)]

    def state_shapes(self, batch_size):
        """Return the shape of each state; the layer must be built."""
        shapes = [(batch_size, self.units), (batch_size, self.window - 1, self.input_dim)]
        return shapes[: self.num_states]

    def _first_state(self, sequences):
        if not self.stateful:
            return self.get_initial_state(ops.shape(sequences)[0])
        size = self.states[0].shape[0]
        if sequences.shape[0] not in (size, None):
            raise ValueError(
                f"QRNN: a stateful layer must be given batches of one size, {size}; received "
                f"{sequences.shape[0]} rows."
            )
        # A copy: PyTorch writes the new states over these, which its gradients need.
        return [ops.copy(ops.cast(state, self.compute_dtype)) for state in self.states]

    def reset_state(self):
        """Begin the next batch at zeros, where the layer is stateful."""
        for state in self.states or []:
            state.assign(ops.zeros_like(state.value))

    def _run(self, sequences, mask, states, training):
        """Return outputs (B, T, U), and the list of final states."""
        c, *before = states
        (sequences,) = without_padding(mask, sequences)
        seen = ops.concatenate([*before, sequences], axis=1)  # (B, k-1 + T, D)
        z, f, o, i = self._convolve(seen, ops.shape(sequences)[1])
        if training and self.zoneout:
            draws = keras.random.uniform(ops.shape(f), seed=self.seed_generator)
            f = ops.where(draws < self.zoneout, ops.ones_like(f), f)
        added = (1 - f if i is None else i) * z
        if mask is None and added.shape[1] == 1:  # a step of decoding: no loop
            c = f * c[:, None] + added
            final = c[:, 0]
        else:
            c, final = linear_recurrence(f, added, mask, c)
        history = [self._last_inputs(seen, mask)] if before else []
        return (c if o is None else o * c), [final, *history]

    def _convolve(self, seen, length):
        """Return z, f, o, i, (B, T, U) each, None for those that the pooling does without."""
        taps = [seen[:, tap : tap + length] for tap in range(self.window)]
        # All convolutions are one product of matrices.
        windows = ops.reshape(ops.concatenate(taps, axis=-1), (-1, self.window * self.input_dim))
        width = self.kernel.shape[-1]
        product = ops.matmul(windows, ops.reshape(self.kernel, (-1, width))) + self.bias
        product = ops.reshape(product, (*ops.shape(taps[0])[:2], width))
        z, *gates = ops.split(product, len(BANKS[self.pooling]), axis=-1)
        f, o, i = (*(ops.sigmoid(gate) for gate in gates), None, None)[:3]
        return ops.tanh(z), f, o, i

    def _last_inputs(self, seen, mask):
        """Return (B, k-1, D), up to the last real step."""
        past = self.window - 1
        if mask is None:
            return seen[:, ops.shape(seen)[1] - past :]
        return _rows_from(seen, _steps_to_the_last(mask), past)

    def compute_output_shape(self, sequences_shape):
        batch_size, length, _ = sequences_shape
        sequence = (batch_size, length, self.units) if self.return_sequences else None
        outputs = sequence or (batch_size, self.units)
        return (outputs, *self.state_shapes(batch_size)) if self.return_state else outputs

    def compute_mask(self, sequences, mask=None, initial_state=None):
        output_mask = _flipped(mask) if self.go_backwards else mask
        output_mask = output_mask if self.return_sequences else None
        return (output_mask, *[None] * self.num_states) if self.return_state else output_mask


def _flipped(mask):
    return None if mask is None else ops.flip(mask, axis=1)


def _last(outputs, mask):
    """Return (B, U), the output of the last real step, zero without one."""
    if mask is None:
        return outputs[:, -1]
    last = ops.maximum(_steps_to_the_last(mask) - 1, 0)
    return _rows_from(outputs, last, 1)[:, 0]


def _steps_to_the_last(mask):
    """Return (B,) the number of steps up to and with the last real one."""
    numbers = ops.arange(1, ops.shape(mask)[1] + 1, dtype="int32")
    return ops.max(ops.where(mask, numbers, 0), axis=1)


def _rows_from(x, first, count):
    """Return (B, count, D): of each row of x, (B, T, D), the steps first, first + 1, ..."""
    batch_size, length, dim = ops.shape(x)
    starts = first + length * ops.arange(batch_size, dtype="int32")
    steps = starts[:, None] + ops.arange(count, dtype="int32")
    return ops.take(ops.reshape(x, (-1, dim)), steps, axis=0)
