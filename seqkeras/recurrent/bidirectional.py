"""A recurrent layer in both directions."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.recurrent.rnn import Recurrent
from seqkeras.shapes import require_sequence


@keras.saving.register_keras_serializable("seqkeras")
class Bidirectional(keras.layers.Layer):
    """A recurrent layer and its copy that reads backwards, side by side.

        output(t) = [forward h(t); backward h(t)]

    Both directions are one composite, and one node of an exported graph; `keras.layers
    .Bidirectional` takes our layers too, and merges in other ways.

    Args:
        layer: a `SimpleRNN`, `LSTM` or `GRU` that goes forwards and keeps no state between batches;
            its copy is made by config.

    Call arguments:
        sequences: (B, T, D).
        initial_state: list of (B, U), the forward layer's first, or None for zeros.
        mask: (B, T) booleans, True for real steps, or None.
        training: whether dropout drops.

    Returns:
        (B, T, 2U) outputs in the order of the inputs; without the layer's `return_sequences` its
        (B, 2U) last outputs, [after the last real step; after the first]. With `return_state` a
        tuple of that and the final states, the forward layer's first.

    Raises:
        ValueError: if the layer is of another kind, goes backwards or is stateful, or there are
            more or fewer initial states than both layers have.

    Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093
    """

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(layer, Recurrent) or layer.go_backwards or layer.stateful:
            raise ValueError(
                "Bidirectional: layer must be a SimpleRNN, LSTM or GRU with go_backwards=False and "
                f"stateful=False; received {layer!r}. keras.layers.Bidirectional takes QRNN, "
                "RNN(cell) and stateful layers."
            )
        self.forward_layer = layer
        config = {
            **layer.get_config(),
            "name": f"{layer.name}_backward",
            "go_backwards": True,
        }
        self.backward_layer = type(layer).from_config(config)
        self.supports_masking = True
        self.supports_jit = layer.supports_jit

    def build(self, sequences_shape, initial_state_shape=None):
        require_sequence(self, sequences=sequences_shape)
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:  # as a layer from a file is
                layer.build(sequences_shape)

    def call(self, sequences, initial_state=None, mask=None, training=False):
        cells = [self.forward_layer.cell, self.backward_layer.cell]
        count = cells[0].num_states
        if initial_state is None:
            batch_size = ops.shape(sequences)[0]
            initial_state = [each for cell in cells for each in cell.get_initial_state(batch_size)]
        if len(initial_state) != 2 * count:
            raise ValueError(
                f"Bidirectional: initial_state must hold {2 * count} tensors; "
                f"received {len(initial_state)}."
            )
        states = [initial_state[:count], initial_state[count:]]
        if training and cells[0].drops:
            outputs, states = self._run_apart(cells, sequences, mask, states)
        else:
            tensors = [[*own, *cell.weights_of_step()] for own, cell in zip(states, cells)]
            outputs, *states = composites.bidirectional(
                sequences, mask, *tensors, cell=cells[0].composite.__name__
            )
        if not self.forward_layer.return_sequences:
            outputs = ops.concatenate([states[0], states[count]], axis=-1)
        return (outputs, *states) if self.forward_layer.return_state else outputs

    def _run_apart(self, cells, sequences, mask, states):
        """Each direction by itself, since each drops other inputs."""
        halves = [
            cell.run(sequences, mask, own, reverse=reverse, training=True)
            for cell, own, reverse in zip(cells, states, (False, True), strict=True)
        ]
        outputs = ops.concatenate([half for half, _ in halves], axis=-1)
        return outputs, [state for _, final in halves for state in final]

    def compute_mask(self, sequences, mask=None):
        layer = self.forward_layer
        kept = mask if layer.return_sequences else None
        return (kept, *[None] * (2 * layer.cell.num_states)) if layer.return_state else kept

    def get_config(self):
        layer = keras.saving.serialize_keras_object(self.forward_layer)
        return {**super().get_config(), "layer": layer}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})
