"""The loop over steps: RNN(cell), and the base of the layers that bring their cell."""

import functools
import inspect
from collections.abc import Sequence

import keras
from keras import ops, tree

from seqkeras.composites import cudnn
from seqkeras.recurrent.cell import Cell
from seqkeras.recurrent.stacked import StackedCells, as_list, run_cell
from seqkeras.shapes import require_mask, require_sequence, require_states, require_steps

__all__ = ["Recurrent"]


@keras.saving.register_keras_serializable("seqkeras")
class RNN(keras.layers.RNN):
    """A cell over the steps of a sequence, with Keras's own arguments.

        output(t), states(t) = cell(x(t), states(t-1))

    Like `keras.layers.RNN`, but a masked step's output is zero unless told otherwise, and a mask
    leaves in the order of the outputs. A cell of ours runs as its composite, with its gradient
    derived by hand.

    Args:
        cell: a cell, ours or Keras's, or a list of them, which becomes `StackedCells`.
        return_sequences: return the output of every step, not only of the last one.
        return_state: return the final states after the outputs.
        go_backwards: read from the last step to the first; the outputs are in the order in which
            they were computed, as Keras's are, so that padding then comes first.
        stateful: begin where the last batch ended; `reset_state()` begins at zeros again. The batch
            size must be fixed.
        unroll: write out the loop of a cell that is no composite, where the length is known.
        zero_output_for_mask: of a masked step; False repeats the output of the real step that was
            read before it, as Keras's own layers do unless told otherwise. Before the first real
            step it is zero on every backend (Keras on JAX: the initial state).
        kwargs: arguments of every layer of Keras, `activity_regularizer` among them.

    Call arguments:
        sequences: (B, T, D).
        initial_state: list of (B, U), or None for zeros.
        mask: (B, T) booleans, True for real steps, or None. A masked step keeps the state.
        training: whether dropout drops.

    Returns:
        (B, T, U) with `return_sequences`, else (B, U), the output of the last real step; with
        `return_state` a tuple of that and each final state.

    Raises:
        ValueError: if the sequences are not of rank 3 or have no step, there are more or fewer
            initial states than the cell has or one of another shape, or the mask has another shape
            than the sequences.

    Reference: Goodfellow et al. 2016, section 10.2, https://www.deeplearningbook.org

    Example:
        >>> import keras
        >>> import numpy as np
        >>> from seqkeras.recurrent import RNN, LSTMCell
        >>> layer = RNN([LSTMCell(5), keras.layers.GRUCell(3)], return_state=True)
        >>> last, *states = layer(np.ones((2, 7, 4)))
        >>> tuple(last.shape), [tuple(state.shape) for state in states]
        ((2, 3), [(2, 5), (2, 5), (2, 3)])
    """

    def __init__(
        self,
        cell: keras.layers.Layer | Sequence[keras.layers.Layer],
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = True,
        **kwargs,
    ):
        if isinstance(cell, keras.layers.StackedRNNCells):
            cell = cell.cells
        super().__init__(
            StackedCells(cell) if isinstance(cell, (list, tuple)) else cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            zero_output_for_mask=zero_output_for_mask,
            **kwargs,
        )
        self.unrolls = unroll  # Keras's own `unroll` refuses a length that is not known
        # cuDNN's operators are none that XLA compiles. As Keras, but before a model asks for it.
        self.supports_jit = not (keras.backend.backend() == "tensorflow" and cudnn.on_gpu())

    def build(self, sequences_shape, initial_state_shape=None):
        require_sequence(self, sequences=sequences_shape)
        super().build(sequences_shape)

    def call(self, sequences, initial_state=None, mask=None, training=False):
        require_sequence(self, sequences=sequences.shape)
        require_steps(self, sequences=sequences)
        require_mask(self, mask, sequences.shape)
        return super().call(sequences, initial_state, mask, training)

    def inner_loop(self, sequences, initial_state, mask, training=False):
        require_states(self, initial_state, self.state_shapes, sequences.shape[0])
        if self.stateful:  # PyTorch writes the new states over these, which its gradients need
            initial_state = tree.map_structure(ops.copy, initial_state)
        outputs, last, states = run_cell(
            self.cell,
            sequences,
            mask,
            initial_state,
            self.go_backwards,
            training,
            self.unrolls,
        )
        if not self.return_sequences:
            return last, outputs, states
        if self.go_backwards:
            outputs = ops.flip(outputs, axis=1)
            mask = None if mask is None else ops.flip(mask, axis=1)
        if not self.zero_output_for_mask and mask is not None:
            outputs = repeated(outputs, ops.cast(mask, "bool"))
        return last, outputs, states

    @property
    def state_shapes(self):
        """The shape of each state, "batch" for the number of rows."""
        return [("batch", *as_list(size)) for size in self.state_size]

    def compute_mask(self, sequences, mask=None):
        output_mask = mask if self.return_sequences else None
        if output_mask is not None and self.go_backwards:
            output_mask = ops.flip(output_mask, axis=1)
        return (output_mask, *[None] * len(self.state_size)) if self.return_state else output_mask

    def get_config(self):
        return {**super().get_config(), "unroll": self.unrolls}


def repeated(outputs, mask, before=None):
    """Return outputs (B, T, U); a masked step repeats the real step before it; without one
    `before`, (B, U), or zeros."""
    length = ops.shape(outputs)[1]
    steps = ops.arange(length)[None]
    real_first = ops.argsort(ops.where(mask, steps, steps + length), axis=1)
    count = ops.cumsum(ops.cast(mask, steps.dtype), axis=1)  # of real steps so far
    places = ops.take_along_axis(real_first, ops.maximum(count - 1, 0), axis=1)
    last = ops.take_along_axis(outputs, places[..., None], axis=1)
    first = ops.zeros_like(last) if before is None else before[:, None]
    return ops.where(count[..., None] > 0, last, first)


class Recurrent(RNN):
    """Base of the recurrent layers; a subclass names its cell.

    It takes the arguments of the same layer of Keras, and its configuration.

    Args:
        units: size of the state, U.
        cell_arguments, options: arguments of the cell (`seqkeras.recurrent.cell.Cell`: activations,
            bias, initializers, regularizers, constraints, dropout, seed) and of `RNN`
            (return_sequences, return_state, go_backwards, stateful, unroll, zero_output_for_mask),
            by the names that Keras's layers have.

    Call arguments, returns and errors: see `RNN`.

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import GRUCell
        >>> from seqkeras.recurrent.rnn import Recurrent
        >>> class PaperGRU(Recurrent):
        ...     cell_class = GRUCell
        >>> layer = PaperGRU(3, reset_after=False, return_sequences=True)  # of the cell, of `RNN`
        >>> tuple(layer(np.ones((2, 5, 4))).shape)
        (2, 5, 3)
    """

    cell_class: type[Cell]

    def __init__(self, units: int, *cell_arguments, **options):
        names = options.keys() & _names_of_options(self.cell_class)
        of_cell = {name: options.pop(name) for name in names}
        cell = self.cell_class(
            units,
            *cell_arguments,
            **of_cell,
            dtype=options.get("dtype"),
            trainable=options.get("trainable", True),
            name="cell",
        )
        super().__init__(cell, **options)

    @property
    def units(self):
        return self.cell.units

    def get_config(self):
        config = super().get_config()
        del config["cell"]
        regularizer = keras.regularizers.serialize(self.activity_regularizer)
        return {**config, **self.cell.options, "activity_regularizer": regularizer}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@functools.cache
def _names_of_options(cell_class):
    """Return the arguments of a cell beside those that every layer of Keras has."""
    return {
        name
        for base in cell_class.__mro__
        if issubclass(base, Cell)
        for name, parameter in inspect.signature(base.__init__).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    } - {"self"}
