"""Stacked recurrent layers, a part of several models."""

import functools

import keras
from keras import ops

from seqkeras.models.rnn_cells import (
    config_of,
    is_qrnn,
    make_layer,
    require_cell,
    state_names,
    state_shapes,
    with_objects,
)
from seqkeras.recurrent import Bidirectional
from seqkeras.shapes import require_positive
from seqkeras.values import build_once


def values_dtype(model):
    """Return the dtype of a model's outputs: float64 if it computes in float64, else float32."""
    return "float64" if model.compute_dtype == "float64" else "float32"


@keras.saving.register_keras_serializable("seqkeras")
class RecurrentStack(keras.layers.Layer):
    """Layers of one kind, with dropout between layers but not of the states.

        h_0 = x        h_l(1..T) = cell_l(dropout(h_{l-1}(1..T)))

    Args:
        cell: "gru", "lstm", "simple_rnn", "qrnn", or a pattern of another
            (`seqkeras.models.rnn_cells`).
        units: U, of every layer, in each direction.
        num_layers: L.
        dropout: dropout rate of the inputs of every layer.
        bidirectional: whether every layer reads both ways.

    Call arguments:
        sequences: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: the states of the lowest layer, then of the next, (B, U) each, those of the
            forward direction first; None for zeros. A `QRNN` has states in its own form.

    Returns:
        (B, T, E) outputs of the highest layer, E = U or in both directions 2U, and the list of
        final states, in the same order.

    Raises:
        ValueError: if a size is not positive, or the cell does not fit.

    Reference: Zaremba et al. 2014, section 3.2, https://arxiv.org/abs/1409.2329

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import RecurrentStack
        >>> stack = RecurrentStack("lstm", units=3, num_layers=2, bidirectional=True)
        >>> outputs, states = stack(np.ones((2, 5, 4)))
        >>> tuple(outputs.shape), len(states)  # h and c of two layers in two directions
        ((2, 5, 6), 8)
    """

    def __init__(
        self,
        cell: str | keras.layers.Layer,
        units: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        require_positive(self, units=units, num_layers=num_layers)
        require_cell(self, cell)
        self.cell_config = functools.partial(config_of, cell)  # hides it from Keras's tracking
        self.options = {
            "units": units,
            "num_layers": num_layers,
            "dropout": dropout,
            "bidirectional": bidirectional,
        }
        self.output_dim = units * (2 if bidirectional else 1)
        self.supports_masking = True
        names, levels = state_names(cell), range(num_layers)
        self.num_states = len(names)  # of a layer, in each direction
        self.num_vectors = 1 if is_qrnn(cell) else len(names)  # (B, U): the first of the states
        self.state_names = [f"{name}_{level}" for level in levels for name in names]
        self.shapes_of_layer = functools.partial(state_shapes, cell, units)
        dtype = self.dtype_policy.name  # a copy is made by config, which takes no object
        layers = [make_layer(cell, units, dtype, f"layer_{level}") for level in levels]
        if bidirectional:
            layers = [Bidirectional(layer, dtype=dtype) for layer in layers]
        self.recurrent_layers = layers
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype)

    def build(self, sequences_shape):
        dim = sequences_shape[-1]
        for layer in self.recurrent_layers:
            build_once(layer, (None, None, dim))
            dim = self.output_dim

    def call(self, sequences, mask=None, initial_state=None, training=False):
        outputs, states = sequences, []
        starts = [None] * len(self.recurrent_layers)
        if initial_state is not None:
            starts = self._of_each_layer(initial_state)
        for layer, start in zip(self.recurrent_layers, starts, strict=True):
            outputs, *final = layer(
                self.dropout(outputs, training=training), mask=mask, initial_state=start
            )
            states += final
        return outputs, states

    def last_states(self, states):
        """Return for each layer the list of its last states (B, E), h first, both directions side
        by side.

        A `QRNN` gives the memory alone, not the inputs that its convolutions read again.

        Args:
            states: the final ones, as the call returned them.
        """
        return [
            [
                ops.concatenate(layer_states[kind :: self.num_states], -1)
                for kind in range(self.num_vectors)
            ]
            for layer_states in self._of_each_layer(states)
        ]

    def state_shapes(self, input_dim):
        """Return the shape of each of `state_names`, without the batch, where sequences are (B, T,
        D)."""
        dims = [input_dim] + [self.output_dim] * (len(self.recurrent_layers) - 1)
        return [shape for dim in dims for shape in self.shapes_of_layer(dim)]

    def _of_each_layer(self, states):
        size = len(states) // len(self.recurrent_layers)
        return [list(states[first : first + size]) for first in range(0, len(states), size)]

    def get_config(self):
        return {**super().get_config(), "cell": self.cell_config(), **self.options}

    @classmethod
    def from_config(cls, config):
        return cls(**with_objects(config, "cell"))
