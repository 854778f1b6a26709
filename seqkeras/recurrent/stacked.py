"""Cells on top of each other, and any cell over a sequence."""

import inspect
from collections.abc import Sequence

import keras
from keras import ops

from seqkeras.composites.recurrent import keras_rnn
from seqkeras.recurrent.cell import Cell
from seqkeras.values import without_padding


@keras.saving.register_keras_serializable("seqkeras")
class StackedCells(keras.layers.Layer):
    """Cells on top of each other, as one cell.

        x_0(t) = x(t);  x_l(t), states_l(t) = cell_l(x_(l-1)(t), states_l(t-1));  output x_L(t)

    Over a sequence (`RNN(StackedCells(cells))`) each cell runs through all steps before the next
    one begins, which gives the same numbers, and each of ours as its own composite.

    Args:
        cells: list of cells, the lowest first; their states stand in one flat list.

    Call arguments:
        inputs: (B, D), one step.
        states: list of all cells' states, the lowest cell's first.

    Returns:
        output of the highest cell, and the list of all new states.

    Raises:
        ValueError: if there is no cell, or something else among them.

    Reference: Graves 2013, section 2, https://arxiv.org/abs/1308.0850, without its skip connections

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import GRUCell, LSTMCell, StackedCells
        >>> cell = StackedCells([GRUCell(5), LSTMCell(3)])
        >>> output, states = cell(np.ones((2, 4)), cell.get_initial_state(2))
        >>> tuple(output.shape), cell.state_size
        ((2, 3), [5, 3, 3])
    """

    def __init__(self, cells: Sequence[keras.layers.Layer], **kwargs):
        super().__init__(**kwargs)
        cells = list(cells)
        if not cells or not all(hasattr(cell, "state_size") for cell in cells):
            raise ValueError(
                f"StackedCells: cells must be a list of at least one cell; received {cells!r}."
            )
        self.cells = cells

    @property
    def state_size(self):
        return [size for cell in self.cells for size in sizes_of(cell)]

    @property
    def num_states(self):
        return len(self.state_size)

    @property
    def output_size(self):
        return output_size_of(self.cells[-1])

    @property
    def units(self):
        return self.output_size

    def build(self, input_shape):
        for cell in self.cells:
            if isinstance(cell, keras.layers.Layer) and not cell.built:
                cell.build(input_shape)
            input_shape = (*input_shape[:-1], output_size_of(cell))

    def call(self, inputs, states, training=False):
        new = []
        for cell, cell_states in self.with_states(states):
            inputs, cell_states = cell(inputs, cell_states, **training_option(cell, training))
            new += as_list(cell_states)
        return inputs, new

    def with_states(self, states):
        """Return (cell, the list of its states) for each cell."""
        states = iter(states)
        return [(cell, [next(states) for _ in sizes_of(cell)]) for cell in self.cells]

    def get_initial_state(self, batch_size):
        """Return the initial states of all cells in one list."""
        return [
            state for cell in self.cells for state in cell.get_initial_state(batch_size=batch_size)
        ]

    def get_config(self):
        cells = [keras.saving.serialize_keras_object(cell) for cell in self.cells]
        return {**super().get_config(), "cells": cells}

    @classmethod
    def from_config(cls, config):
        cells = [keras.saving.deserialize_keras_object(cell) for cell in config["cells"]]
        return cls(**{**config, "cells": cells})


def run_cell(cell, sequence, mask, states, reverse, training, unroll=False):
    """Run any cell over a sequence: ours as composites, a stack cell by cell, others in Keras's
    loop.

    Args:
        cell: takes (inputs, states) and returns (output, states).
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        states: list of (B, ·), as the cell takes them.
        reverse: from the last step to the first; outputs stay in the order of the inputs.
        training: whether dropout drops.
        unroll: whether a loop over a known number of steps is written out.

    Returns:
        (B, T, U) outputs, zero at masked steps; (B, U), the output of the last real step, zero in a
        row that has none if its states are; and the list of final states.
    """
    if isinstance(cell, Cell):
        outputs, states = cell.run(sequence, mask, states, reverse, training, unroll)
        return outputs, states[0], states
    if isinstance(cell, StackedCells):
        finals = []
        for one, cell_states in cell.with_states(states):
            sequence, last, cell_states = run_cell(
                one, sequence, mask, cell_states, reverse, training, unroll
            )
            finals += cell_states
        return sequence, last, finals
    return _run_in_keras_loop(cell, sequence, mask, states, reverse, training, unroll)


def _run_in_keras_loop(cell, sequence, mask, states, reverse, training, unroll):
    (sequence,) = without_padding(mask, sequence)
    options = training_option(cell, training)
    last = ops.zeros((ops.shape(sequence)[0], output_size_of(cell)), sequence.dtype)
    _draw_dropout_masks(cell, sequence[:, 0], states[0])

    def step(inputs, states):
        output, states = cell(inputs, list(states[:-1]), **options)
        return output, [*as_list(states), ops.cast(output, last.dtype)]

    _, outputs, (*states, last) = keras_rnn(
        step,
        sequence,
        [*states, last],
        mask=mask,
        go_backwards=reverse,
        zero_output_for_mask=True,
        unroll=unroll and sequence.shape[1] is not None,
    )
    _forget_dropout_masks(cell)
    return (ops.flip(outputs, axis=1) if reverse else outputs), last, list(states)


def _draw_dropout_masks(cell, inputs, state):
    """Draw the masks outside of the loop, so that Keras's cells keep one mask for a sequence."""
    if hasattr(cell, "get_dropout_mask"):
        cell.get_dropout_mask(inputs)
        cell.get_recurrent_dropout_mask(state)


def _forget_dropout_masks(cell):
    if hasattr(cell, "get_dropout_mask"):
        cell.reset_dropout_mask()
        cell.reset_recurrent_dropout_mask()


def sizes_of(cell):
    """Return the list of the sizes of a cell's states; a cell may give a number for a single
    one."""
    return as_list(cell.state_size)


def as_list(values):
    """Return states as a list; a cell may give a single state without one."""
    return list(values) if isinstance(values, (list, tuple)) else [values]


def output_size_of(cell):
    """Return the size of a cell's output; by default the size of its first state."""
    return getattr(cell, "output_size", None) or sizes_of(cell)[0]


def training_option(cell, training):
    """Return the `training` argument, for a cell that takes one."""
    takes = "training" in inspect.signature(cell.call).parameters
    return {"training": training} if takes else {}
