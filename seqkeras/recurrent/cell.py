"""The base classes of cells: `cell(inputs, states) -> (output, states)`, Keras's protocol."""

from collections.abc import Callable

import keras
from keras import activations, constraints, initializers, ops, regularizers

from seqkeras.composites import Network, cudnn, tracing_nodes
from seqkeras.composites.recurrent import keras_rnn
from seqkeras.shapes import require_positive
from seqkeras.tensors import Tensor
from seqkeras.values import without_padding

__all__ = ["Cell", "GatedCell"]

KINDS = {"initializer": initializers, "regularizer": regularizers, "constraint": constraints}


class Cell(keras.layers.Layer):
    """Base of the cells; a subclass names its network.

    A cell with tanh and sigmoid is its network's composite, over a sequence and in an exported
    graph. One with other activations takes the network's steps in Keras's loop.

    Dropout draws one mask for a sequence and keeps it at every step (Gal and Ghahramani 2016), so
    it belongs to the loop: `run`, or a layer. A single step in training refuses it.

    Args:
        units: size of each state, U.
        activation: activation of what enters the state, and of what leaves an LSTM's.
        use_bias: whether there is b.
        kernel_initializer, recurrent_initializer, bias_initializer: initializers of the weights, as
            Keras's.
        kernel_regularizer, recurrent_regularizer, bias_regularizer: the losses that they add.
        kernel_constraint, recurrent_constraint, bias_constraint: what they must be after a step.
        dropout: share of the inputs that training sets to zero; the others grow by 1 / (1 - share).
        recurrent_dropout: the same for h(t-1) on its way into the gates.
        seed: seed of the dropout, an integer or None.

    Call arguments:
        inputs: (B, D), one step.
        states: list of (B, U), h first.

    Returns:
        (B, U) output, and the list of new states.

    Raises:
        ValueError: if units is not a positive integer, a share not from 0 to below 1, the inputs
            are not of rank 2, or a single step in training would have to drop something.

    Reference: dropout: Gal and Ghahramani 2016, section 4, https://arxiv.org/abs/1512.05287

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.composites import Network
        >>> from seqkeras.recurrent import RNN
        >>> from seqkeras.recurrent.cell import Cell
        >>> class SineCell(Cell):  # h(t) = sin(W x(t) + U h(t-1) + b)
        ...     network = Network(
        ...         "sine",
        ...         lambda inputs, recurrent, states, activation=None: (
        ...             [ops.sin(inputs + recurrent)], [inputs + recurrent]
        ...         ),
        ...         lambda by_states, saved: ([by_states[0] * ops.cos(saved[0])], [None]),
        ...     )
        >>> tuple(RNN(SineCell(3))(np.ones((2, 5, 4))).shape)
        (2, 3)
    """

    network: Network
    bias_rows = ()  # of the bias, before its gates: (2,) for one of the inputs and one of the state

    def __init__(
        self,
        units: int,
        activation: str | Callable[[Tensor], Tensor] = "tanh",
        use_bias: bool = True,
        kernel_initializer: str | keras.initializers.Initializer = "glorot_uniform",
        recurrent_initializer: str | keras.initializers.Initializer = "orthogonal",
        bias_initializer: str | keras.initializers.Initializer = "zeros",
        kernel_regularizer: str | keras.regularizers.Regularizer | None = None,
        recurrent_regularizer: str | keras.regularizers.Regularizer | None = None,
        bias_regularizer: str | keras.regularizers.Regularizer | None = None,
        kernel_constraint: str | keras.constraints.Constraint | None = None,
        recurrent_constraint: str | keras.constraints.Constraint | None = None,
        bias_constraint: str | keras.constraints.Constraint | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
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
        return [self.units] * len(self.network.masked_copies)

    @property
    def output_size(self):
        return self.units

    @property
    def width(self):
        """The width G U of the gates side by side."""
        return len(self.network.masked_gates) * self.units

    @property
    def is_composite(self):
        """Whether the network with its own activations computes what the cell does."""
        return self.activation == activations.tanh

    @property
    def step_activations(self):
        """The states of the network's steps."""
        return [self.activation]

    def build(self, input_shape):
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__}: inputs must have shape (batch, dim), one step; received "
                f"{tuple(input_shape)}. Loop over a sequence with seqkeras.recurrent.RNN."
            )
        self.network.require_consistent(self.units, self.compute_dtype)
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], self.width), **self.kernel_options
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, self.width), **self.recurrent_options
        )
        self.bias = None
        if self.use_bias:
            options = {**self.bias_options, "initializer": self._bias_initializer()}
            shape = (*self.bias_rows, self.width)
            self.bias = self.add_weight(name="bias", shape=shape, **options)

    def _bias_initializer(self):
        return self.bias_options["initializer"]

    def run(self, sequence, mask, states, reverse=False, training=False, unroll=False):
        """Run the cell over a sequence (B, T, D), as a composite: outputs (B, T, U), final
        states."""
        dropout_mask = None
        if training and self.dropout:
            sequence = sequence * self._draw(sequence[:, 0], self.dropout)[:, None]
        if training and self.recurrent_dropout:
            dropout_mask = self._draw(states[0], self.recurrent_dropout)
        if not self.is_composite:
            return self._run_step_by_step(sequence, mask, states, dropout_mask, reverse, unroll)
        outputs, *states = self.network(
            sequence, mask, list(states), self.weights_of_step(), dropout_mask, reverse=reverse
        )
        return outputs, states

    def _run_step_by_step(self, sequence, mask, states, dropout_mask, reverse, unroll):
        """Run like `run`, with any activations, in Keras's loop over the steps."""
        (sequence,) = without_padding(mask, sequence)
        # `stateless_call` of a layer that no other holds casts nothing to the policy's dtype.
        sequence, kernel, recurrent_kernel, bias = (
            ops.cast(tensor, self.compute_dtype) for tensor in (sequence, *self.weights_of_step())
        )
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
        """Return the new states after a step.

        Args:
            inputs: (B, G U), W x(t) + b.
            h: (B, U), h(t-1) as it enters the gates, after dropout.
            recurrent_kernel, bias: the result of `weights_of_step`.
            states: (B, U) each, those before.
        """
        recurrent = ops.matmul(h, recurrent_kernel)
        if self.bias_rows:
            recurrent = recurrent + bias[1]
        states, _ = self.network.step(inputs, recurrent, states, *self.step_activations)
        return states

    def _draw(self, like, share):
        return keras.random.dropout(ops.ones_like(like), share, seed=self.seed_generator)

    def weights_of_step(self):
        """Return the kernel, the recurrent kernel and the bias; zeros where there is none."""
        bias = self.bias
        if bias is None:
            bias = ops.zeros((*self.bias_rows, self.width), self.compute_dtype)
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
        """Return zeros for each state."""
        return [ops.zeros((batch_size, self.units), self.compute_dtype) for _ in self.state_size]

    @property
    def options(self):
        """The arguments of the constructor that are not common to all Keras layers."""
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
    """Return the arguments of `add_weight`. Names of initializers are resolved there, with a new
    seed."""
    if not isinstance(initializer, str):
        initializer = initializers.get(initializer)
    return {
        "initializer": initializer,
        "regularizer": regularizers.get(regularizer),
        "constraint": constraints.get(constraint),
    }


class GatedCell(Cell):
    """Base of the cells whose gates have another activation.

    Args:
        units, activation, options: see `Cell`.
        recurrent_activation: activation of the gates.
        use_cudnn: False: never by cuDNN; "auto" or True: where it can.
        implementation: 1 or 2, as Keras's, whose results are the same; nothing depends on it here.

    Raises:
        ValueError: if use_cudnn or implementation is something else; see also `Cell`.

    Example:
        >>> from seqkeras.recurrent import LSTMCell
        >>> cell = LSTMCell(3, recurrent_activation="hard_sigmoid")  # one of its subclasses
        >>> cell.build((None, 4))
        >>> cell.width, cell.is_composite  # 4 gates of 3 units; steps in Keras's loop
        (12, False)
    """

    def __init__(
        self,
        units: int,
        activation: str | Callable[[Tensor], Tensor] = "tanh",
        recurrent_activation: str | Callable[[Tensor], Tensor] = "sigmoid",
        *args,
        use_cudnn: bool | str = "auto",
        implementation: int = 2,
        **options,
    ):
        super().__init__(units, activation, *args, **options)
        if use_cudnn not in ("auto", True, False):
            raise ValueError(
                f'{type(self).__name__}: use_cudnn must be "auto", True or False; received '
                f"{use_cudnn!r}."
            )
        if implementation not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: implementation must be 1 or 2; received "
                f"{implementation!r}."
            )
        self.recurrent_activation = activations.get(recurrent_activation)
        self.use_cudnn = use_cudnn
        self.implementation = implementation

    @property
    def step_activations(self):
        return [self.activation, self.recurrent_activation]

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
            "implementation": self.implementation,
        }


def _never_by_cudnn():
    """Return whether composites can not use cuDNN here; on PyTorch this depends on the tensors."""
    return tracing_nodes() or (keras.backend.backend() != "torch" and not cudnn.reached_with())
