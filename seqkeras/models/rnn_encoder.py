"""The encoder of a recurrent encoder-decoder: one layer or several, one way or both."""

import keras
from keras import ops

from seqkeras.models.recurrent_stack import LAYERS
from seqkeras.recurrent import Bidirectional
from seqkeras.values import build_once


def make_encoder(cell, units, num_layers, bidirectional, dropout, dtype):
    """A layer that returns the outputs of every step, and the final states."""

    def make_layer():
        layer = LAYERS[cell](units, return_sequences=True, return_state=True, dtype=dtype)
        return Bidirectional(layer, dtype=dtype) if bidirectional else layer

    layers = [make_layer() for _ in range(num_layers)]
    width = 2 * units if bidirectional else units
    return layers[0] if num_layers == 1 else EncoderStack(layers, width, dropout, dtype=dtype)


def last_states(states, num_layers, num_states):
    """For each layer the list of its last states (B, E), h first, both directions side by side.

    Args:
        states: what the encoder returned behind its outputs.
        num_layers: of the encoder.
        num_states: of its cell.
    """
    per_layer = len(states) // num_layers
    of_layers = [states[first : first + per_layer] for first in range(0, len(states), per_layer)]
    return [
        [ops.concatenate(each[kind::num_states], axis=-1) for kind in range(num_states)]
        for each in of_layers
    ]


class EncoderStack(keras.layers.Layer):
    """Recurrent layers on top of each other, with dropout between them.

        h_1(1..S) = layer_1(x(1..S))        h_l(1..S) = layer_l(dropout(h_{l-1}(1..S)))

    Args:
        layers: list of recurrent layers, or `Bidirectional` ones, that return sequences and states.
        width: of the outputs of each, E.
        dropout: between the layers.

    Call arguments:
        sequences: (B, S, D).
        mask: (B, S) booleans, True for real steps, or None.

    Returns:
        The outputs (B, S, E) of the highest layer, then the final states of each, the lowest first.

    Reference: Zaremba et al. 2014, section 3.1, https://arxiv.org/abs/1409.2329
    """

    def __init__(self, layers, width, dropout, **kwargs):
        super().__init__(**kwargs)
        self.stacked_layers = layers
        self.width = width
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.supports_masking = True

    def build(self, sequences_shape):
        for level, layer in enumerate(self.stacked_layers):
            build_once(layer, (None, None, self.width if level else sequences_shape[-1]))

    def call(self, sequences, mask=None, training=False):
        outputs, *states = self.stacked_layers[0](sequences, mask=mask)
        for layer in self.stacked_layers[1:]:
            outputs, *final = layer(self.dropout(outputs, training=training), mask=mask)
            states += final
        return (outputs, *states)
