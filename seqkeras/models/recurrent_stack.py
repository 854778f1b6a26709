"""Recurrent layers on top of each other: what several models are made of."""

import keras

from seqkeras.recurrent import GRU, LSTM, SimpleRNN
from seqkeras.values import build_once

LAYERS = {"gru": GRU, "lstm": LSTM, "simple_rnn": SimpleRNN}
STATE_NAMES = {"gru": ["hidden"], "lstm": ["hidden", "cell"], "simple_rnn": ["hidden"]}


def require_sizes(model, cell=None, **sizes):
    """Raise a ValueError unless every named size is at least 1 and the cell, if given, is known."""
    who = type(model).__name__
    if min(sizes.values()) < 1:
        raise ValueError(f"{who}: every size must be at least 1; received {sizes}.")
    if cell is not None and cell not in LAYERS:
        raise ValueError(f"{who}: cell must be one of {sorted(LAYERS)}; received {cell!r}.")


def values_dtype(model):
    """The dtype of what leaves a model: float64 where it computes in that, else float32."""
    return "float64" if model.compute_dtype == "float64" else "float32"


class RecurrentStack(keras.layers.Layer):
    """Layers of one kind, with dropout of what goes up from layer to layer and not of the states.

        h_0 = x        h_l(1..T) = cell_l(dropout(h_{l-1}(1..T)))

    Args:
        cell: "gru", "lstm" or "simple_rnn".
        units: U, of every layer.
        num_layers: L.
        dropout: of the inputs of every layer.

    Call arguments:
        sequences: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.
        initial_state: the states of the lowest layer, then of the next, (B, U) each; None for
            zeros.

    Returns:
        (B, T, U) outputs of the highest layer, and the list of final states, in the same order.

    Reference: Zaremba et al. 2014, section 3.2, https://arxiv.org/abs/1409.2329
    """

    def __init__(self, cell, units, num_layers, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.supports_masking = True
        self.recurrent_layers = [
            LAYERS[cell](
                units,
                return_sequences=True,
                return_state=True,
                dtype=self.dtype_policy,
                name=f"layer_{level}",
            )
            for level in range(num_layers)
        ]
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.state_names = [
            f"{name}_{level}" for level in range(num_layers) for name in STATE_NAMES[cell]
        ]

    def build(self, sequences_shape):
        dim = sequences_shape[-1]
        for layer in self.recurrent_layers:
            build_once(layer, (None, None, dim))
            dim = self.units

    def call(self, sequences, mask=None, initial_state=None, training=False):
        outputs, states = sequences, []
        per_layer = len(self.state_names) // len(self.recurrent_layers)
        for level, layer in enumerate(self.recurrent_layers):
            first = level * per_layer
            given = initial_state and list(initial_state[first : first + per_layer])
            outputs, *final = layer(
                self.dropout(outputs, training=training), mask=mask, initial_state=given
            )
            states += final
        return outputs, states
