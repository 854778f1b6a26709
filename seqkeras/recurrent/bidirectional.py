"""A recurrent layer in both directions."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.recurrent.qrnn import QRNN
from seqkeras.recurrent.rnn import Recurrent
from seqkeras.recurrent.stacked import as_list
from seqkeras.shapes import require_mask, require_sequence, require_states, require_steps
from seqkeras.values import build_once


@keras.saving.register_keras_serializable("seqkeras")
class Bidirectional(keras.layers.Layer):
    """A recurrent layer and its copy that reads backwards, side by side.

        output(t) = [forward h(t); backward h(t)]

    Both directions of a `SimpleRNN`, `LSTM` or `GRU` are one composite, and one node of an exported
    graph, unless it is stateful or training makes it drop: then, as with every other layer, two
    layers run, and the outputs of the second are turned round. `keras.layers.Bidirectional` takes
    our layers too, and merges in other ways.

    Args:
        layer: a recurrent layer that goes forwards: one of `seqkeras.recurrent`, `RNN` of any cell
            among them, or one of Keras's. Its copy is made by config.

    Call arguments:
        sequences: (B, T, D).
        initial_state: list of the layer's states (B, U), the forward ones first, or None for what
            the layer begins with.
        mask: (B, T) booleans, True for real steps, or None. The backward layer reads padding first.
        training: whether dropout drops.

    Returns:
        (B, T, 2U) outputs in the order of the inputs, zero at masked steps; without the layer's
        `return_sequences` its (B, 2U) last outputs, [after the last real step; after the first].
        With `return_state` a tuple of that and the final states, the forward layer's first.

    Raises:
        ValueError: if the layer is not recurrent or goes backwards, the sequences have no step,
            there are more or fewer initial states than both layers have or one of another shape, or
            the mask has another shape than the sequences.

    Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093
    """

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(layer, (keras.layers.RNN, QRNN)) or layer.go_backwards:
            raise ValueError(
                "Bidirectional: layer must be a recurrent layer, such as LSTM, QRNN or RNN(cell), "
                f"with go_backwards=False; received {layer!r}."
            )
        self.forward_layer = layer
        config = {
            **layer.get_config(),
            "name": f"{layer.name}_backward",
            "go_backwards": True,
        }
        self.backward_layer = type(layer).from_config(config)
        for each in self._layers_of_both_ways():
            if isinstance(each, keras.layers.RNN):  # Keras's own may repeat the output before
                each.zero_output_for_mask = each.return_sequences
        self.num_states = 2 * _num_states(layer)
        self.supports_masking = True
        self.supports_jit = layer.supports_jit

    @property
    def stateful(self):
        return self.forward_layer.stateful

    def build(self, sequences_shape, initial_state_shape=None):
        require_sequence(self, sequences=sequences_shape)
        for layer in self._layers_of_both_ways():
            build_once(layer, sequences_shape)

    def call(self, sequences, initial_state=None, mask=None, training=False):
        require_sequence(self, sequences=sequences.shape)
        require_steps(self, sequences=sequences)
        require_mask(self, mask, sequences.shape)
        if initial_state is not None:
            shapes = 2 * _state_shapes(self.forward_layer)
            require_states(self, initial_state, shapes, sequences.shape[0])
        run = self._as_one_composite if self._is_one(training) else self._as_two_layers
        outputs, states = run(sequences, initial_state, mask, training)
        return (outputs, *states) if self.forward_layer.return_state else outputs

    def _is_one(self, training):
        layer = self.forward_layer
        return isinstance(layer, Recurrent) and not (
            layer.stateful or (training and layer.cell.drops)
        )

    def _as_one_composite(self, sequences, initial_state, mask, training):
        cells = [layer.cell for layer in self._layers_of_both_ways()]
        if initial_state is None:
            batch_size = ops.shape(sequences)[0]
            initial_state = [each for cell in cells for each in cell.get_initial_state(batch_size)]
        tensors = [
            [*own, *cell.weights_of_step()]
            for own, cell in zip(self._of_each(initial_state), cells, strict=True)
        ]
        outputs, *states = composites.bidirectional(
            sequences, mask, *tensors, cell=cells[0].composite.__name__
        )
        if not self.forward_layer.return_sequences:
            last = [own[0] for own in self._of_each(states)]
            outputs = ops.concatenate(last, axis=-1)
        return outputs, states

    def _as_two_layers(self, sequences, initial_state, mask, training):
        starts = [None, None] if initial_state is None else self._of_each(initial_state)
        results = [
            layer(sequences, initial_state=start, mask=mask, training=training)
            for layer, start in zip(self._layers_of_both_ways(), starts, strict=True)
        ]
        states = []
        if self.forward_layer.return_state:
            states = [state for _, *own in results for state in own]
            results = [outputs for outputs, *_ in results]
        forward, backward = results
        if self.forward_layer.return_sequences:
            backward = ops.flip(backward, axis=1)
        return ops.concatenate([forward, backward], axis=-1), states

    def _layers_of_both_ways(self):
        return [self.forward_layer, self.backward_layer]

    def _of_each(self, states):
        """Two lists of states, the forward layer's and the backward one's."""
        half = self.num_states // 2
        return [list(states[:half]), list(states[half:])]

    def reset_state(self):
        """Begin the next batch at zeros, where the layer is stateful."""
        for layer in self._layers_of_both_ways():
            layer.reset_state()

    def compute_output_shape(self, sequences_shape):
        shapes = self.forward_layer.compute_output_shape(sequences_shape)
        if not self.forward_layer.return_state:
            return (*shapes[:-1], 2 * shapes[-1])
        outputs, *states = shapes
        return ((*outputs[:-1], 2 * outputs[-1]), *states, *states)

    def compute_mask(self, sequences, mask=None):
        layer = self.forward_layer
        kept = mask if layer.return_sequences else None
        return (kept, *[None] * self.num_states) if layer.return_state else kept

    def get_config(self):
        layer = keras.saving.serialize_keras_object(self.forward_layer)
        return {**super().get_config(), "layer": layer}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})


def _num_states(layer):
    return layer.num_states if isinstance(layer, QRNN) else len(layer.state_size)


def _state_shapes(layer):
    if isinstance(layer, QRNN):
        return layer.state_shapes("batch")
    return [("batch", *as_list(size)) for size in layer.state_size]
