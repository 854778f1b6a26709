"""One step of a recurrence: `cell(inputs, states) -> (output, states)`, Keras's own protocol."""

import keras
from keras import activations, constraints, initializers, ops, regularizers

from seqkeras import composites
from seqkeras.composites import cudnn, keras_rnn
from seqkeras.shapes import require_positive
from seqkeras.values import without_padding

KINDS = {"initializer": initializers, "regularizer": regularizers, "constraint": constraints}


class Cell(keras.layers.Layer):
    """Base of the cells; a subclass names its gates, its states and its composite.

    A cell with tanh and sigmoid is its composite, over a sequence and in an exported graph. One
    with other activations runs step by step, in Keras's loop.

    Dropout draws one mask for a sequence and keeps it at every step (Gal and Ghahramani 2016), so
    it belongs to the loop: `run`, or a layer. A single step in training refuses it.

    Args:
        units: size of each state, U.
        activation: of what enters the state, and of what leaves an LSTM's.
        use_bias: whether there is b.
        kernel_initializer, recurrent_initializer, bias_initializer: of the weights, as Keras's.
        kernel_regularizer, recurrent_regularizer, bias_regularizer: the losses that they add.
        kernel_constraint, recurrent_constraint, bias_constraint: what they must be after a step.
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
    bias_rows = ()  # of the bias, before its gates

    def __init__(
        self,
        units,
        activation="tanh",
        use_bias=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        kernel_regularizer=None,
        recurrent_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        recurrent_constraint=None,
        bias_constraint=None,
        dropout=0.0,
        recurrent_dropout=0.0,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        who = type(self).__name__
        require_positive(self, units=units)
        for name, share in (("dropout", dropout), ("recurrent_dropout", recurrent_dropout)):
            if not 0 <= share < 1:
                raise ValueError(
                    f"{who}: {name} must be at least 0 and below 1; received {share!r}."
                )
        self.units = units
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_options = _options(kernel_initializer, kernel_regularizer, kernel_constraint)
        self.recurrent_options = _options(
            recurrent_initializer, recurrent_regularizer, recurrent_constraint
        )
        self.bias_options = _options(bias_initializer, bias_regularizer, bias_constraint)
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

    @property
    def is_composite(self):
        """Whether the composite computes what the cell does."""
        return self.activation == activations.tanh

    def build(self, input_shape):
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__}: inputs must have shape (batch, dim), one step; received "
                f"{tuple(input_shape)}. Loop over a sequence with seqkeras.recurrent.RNN."
            )
        width = self.num_gates * self.units
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], width), **self.kernel_options
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, width), **self.recurrent_options
        )
        self.bias = None
        if self.use_bias:
            options = {**self.bias_options, "initializer": self._bias_initializer()}
            self.bias = self.add_weight(name="bias", shape=(*self.bias_rows, width), **options)

    def _bias_initializer(self):
        return self.bias_options["initializer"]

    def run(self, sequence, mask, states, reverse=False, training=False, unroll=False):
        """The cell over a sequence (B, T, D), as a composite: outputs (B, T, U), final states."""
        dropout_mask = None
        if training and self.dropout:
            sequence = sequence * self._draw(sequence[:, 0], self.dropout)[:, None]
        if training and self.recurrent_dropout:
            dropout_mask = self._draw(states[0], self.recurrent_dropout)
        if not self.is_composite:
            return self._run_step_by_step(sequence, mask, states, dropout_mask, reverse, unroll)
        outputs, *states = type(self).composite(
            sequence, mask, *states, *self.weights_of_step(), dropout_mask, reverse=reverse
        )
        return outputs, states

    def _run_step_by_step(self, sequence, mask, states, dropout_mask, reverse, unroll):
        """As `run`, with any activations, in Keras's loop over the steps."""
        (sequence,) = without_padding(mask, sequence)
        kernel, recurrent_kernel, bias = self.weights_of_step()
        inputs = ops.matmul(sequence, kernel) + (bias[0] if self.bias_rows else bias)  # (B, T, G U)

        def step(inputs, states):
            h = states[0] if dropout_mask is None else states[0] * dropout_mask
            states = self._advance(inputs, h, recurrent_kernel, bias, list(states))
            return states[0], states

        if sequence.shape[1] == 1 and mask is None:
            output, states = step(inputs[:, 0], states)
            return output[:, None], states
        _, outputs, states = keras_rnn(
            step,
            inputs,
            list(states),
            mask=mask,
            go_backwards=reverse,
            zero_output_for_mask=True,
            unroll=unroll and sequence.shape[1] is not None,
        )
        return (ops.flip(outputs, axis=1) if reverse else outputs), list(states)

    def _advance(self, inputs, h, recurrent_kernel, bias, states):
        """The new states after a step.

        Args:
            inputs: (B, G U), W x(t) + b.
            h: (B, U), h(t-1) as it enters the gates, behind dropout.
            recurrent_kernel, bias: as `weights_of_step` gives them.
            states: (B, U) each, those before.
        """
        raise NotImplementedError

    def _draw(self, like, share):
        return keras.random.dropout(ops.ones_like(like), share, seed=self.seed_generator)

    def weights_of_step(self):
        """The kernel, the recurrent kernel and the bias; zeros where there is none."""
        bias = self.bias
        if bias is None:
            width = self.num_gates * self.units
            bias = ops.zeros((*self.bias_rows, width), self.compute_dtype)
        return [self.kernel, self.recurrent_kernel, bias]

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

    @property
    def options(self):
        """The arguments of the constructor beside those that every layer of Keras has."""
        weights = {
            f"{role}_{kind}": value if isinstance(value, str) else KINDS[kind].serialize(value)
            for role in ("kernel", "recurrent", "bias")
            for kind, value in getattr(self, f"{role}_options").items()
        }
        return {
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            **weights,
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "seed": self.seed,
        }

    def get_config(self):
        return {**super().get_config(), **self.options}


def _options(initializer, regularizer, constraint):
    """What `add_weight` takes. A name makes its initializer there: each draws a seed."""
    if not isinstance(initializer, str):
        initializer = initializers.get(initializer)
    return {
        "initializer": initializer,
        "regularizer": regularizers.get(regularizer),
        "constraint": constraints.get(constraint),
    }


class GatedCell(Cell):
    """Base of the cells whose gates have an activation of their own.

    Args:
        units, activation, options: as `Cell` has them.
        recurrent_activation: of the gates.
        use_cudnn: False: never by cuDNN; "auto" or True: where it can.

    Raises:
        ValueError: if use_cudnn is something else; see also `Cell`.
    """

    def __init__(
        self,
        units,
        activation="tanh",
        recurrent_activation="sigmoid",
        *args,
        use_cudnn="auto",
        **options,
    ):
        super().__init__(units, activation, *args, **options)
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f'{type(self).__name__}: use_cudnn must be "auto", True or False; received '
                f"{use_cudnn!r}."
            )
        self.recurrent_activation = activations.get(recurrent_activation)
        self.use_cudnn = use_cudnn

    @property
    def is_composite(self):
        usual = super().is_composite and self.recurrent_activation == activations.sigmoid
        return usual and (self.use_cudnn is not False or _never_by_cudnn())

    @property
    def options(self):
        gates = activations.serialize(self.recurrent_activation)
        return {
            **super().options,
            "recurrent_activation": gates,
            "use_cudnn": self.use_cudnn,
        }


def _never_by_cudnn():
    """Whether no composite reaches cuDNN here; on PyTorch only its tensors would tell."""
    return composites.tracing_nodes() or (keras.backend.backend() != "torch" and not cudnn.on_gpu())


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNNCell(Cell):
    """One step of `seqkeras.composites.rnn`: h(t) = tanh(b + U x(t) + W h(t-1)).

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    num_gates = 1
    composite = staticmethod(composites.rnn)

    def _advance(self, inputs, h, recurrent_kernel, bias, states):
        return [self.activation(inputs + ops.matmul(h, recurrent_kernel))]


@keras.saving.register_keras_serializable("seqkeras")
class LSTMCell(GatedCell):
    """One step of `seqkeras.composites.lstm`; states h and c.

    Args:
        units, options: as the other cells have them.
        unit_forget_bias: the forget bias starts at one, and not as the others.

    Reference: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735
    """

    num_gates = 4
    num_states = 2
    composite = staticmethod(composites.lstm)

    def __init__(self, units, *args, unit_forget_bias=True, **options):
        super().__init__(units, *args, **options)
        self.unit_forget_bias = unit_forget_bias

    def _bias_initializer(self):
        given = super()._bias_initializer()
        if not self.unit_forget_bias:
            return given

        def ones_for_the_forget_gate(shape, dtype=None):
            drawn = initializers.get(given)(shape, dtype=dtype)
            return ops.where(ops.arange(shape[0]) // self.units == 1, ops.ones_like(drawn), drawn)

        return ones_for_the_forget_gate

    def _advance(self, inputs, h, recurrent_kernel, bias, states):
        i, f, g, o = ops.split(inputs + ops.matmul(h, recurrent_kernel), 4, axis=-1)
        i, f, o = (self.recurrent_activation(gate) for gate in (i, f, o))
        c = f * states[1] + i * self.activation(g)
        return [o * self.activation(c), c]

    @property
    def options(self):
        return {**super().options, "unit_forget_bias": self.unit_forget_bias}


@keras.saving.register_keras_serializable("seqkeras")
class GRUCell(GatedCell):
    """One step of `seqkeras.composites.gru`, the reset gate applied after the matrix product.

    Args:
        units, options: as the other cells have them.
        reset_after: False: r(t) resets h(t-1) before its product, as in the paper, and there is one
            bias, (3U,). Such a cell runs step by step.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """

    num_gates = 3
    composite = staticmethod(composites.gru)

    def __init__(self, units, *args, reset_after=True, **options):
        super().__init__(units, *args, **options)
        self.reset_after = reset_after
        self.bias_rows = (2,) if reset_after else ()

    @property
    def is_composite(self):
        return super().is_composite and self.reset_after

    def _advance(self, inputs, h, recurrent_kernel, bias, states):
        gates, candidate = ops.split(inputs, [2 * self.units], axis=-1)
        kernels = ops.split(recurrent_kernel, [2 * self.units], axis=-1)
        own = [0, 0] if not self.reset_after else ops.split(bias[1], [2 * self.units])
        z, r = ops.split(gates + ops.matmul(h, kernels[0]) + own[0], 2, axis=-1)
        z, r = self.recurrent_activation(z), self.recurrent_activation(r)
        if self.reset_after:
            n = r * (ops.matmul(h, kernels[1]) + own[1])
        else:
            n = ops.matmul(r * h, kernels[1])
        return [z * states[0] + (1 - z) * self.activation(candidate + n)]

    @property
    def options(self):
        return {**super().options, "reset_after": self.reset_after}
