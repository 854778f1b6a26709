"""A recurrent layer in both directions."""

import keras
from keras import ops

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
    graph, unless it is stateful, training makes it drop, or its cell is no composite: then, as with
    every other layer, two layers run, and the outputs of the second are reversed.

    Args:
        layer: a recurrent layer that goes forwards: one of `seqkeras.recurrent`, `RNN` of any cell
            among them, or one of Keras's.
        merge_mode: how the outputs of both meet: "concat", "sum", "mul", "ave", or None for a tuple
            of them.
        backward_layer: one that goes backwards, and else returns what the other does; None for a
            copy of the layer, made by config.

    Call arguments:
        sequences: (B, T, D).
        initial_state: list of the layer's states (B, U), the forward ones first, or None for what
            the layer begins with.
        mask: (B, T) booleans, True for real steps, or None. The backward layer reads padding first.
        training: whether dropout drops.

    Returns:
        (B, T, 2U) outputs in the order of the inputs, zero at masked steps; without the layer's
        `return_sequences` its (B, 2U) last outputs, [after the last real step; after the first].
        With `return_state` a tuple of that and the final states, the forward layer's first. U, not
        2U, where they do not stand side by side; two outputs instead of one where they do not
        merge.

    Raises:
        ValueError: if the layer is not recurrent or goes backwards, the backward layer forwards or
            returns something else, the merge_mode is unknown, the sequences have no step, there are
            more or fewer initial states than both layers have or one of another shape, or
            the mask has another shape than the sequences.

    Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093

    Example:
        >>> import numpy as np
        >>> from seqkeras.recurrent import LSTM, Bidirectional
        >>> layer = Bidirectional(LSTM(3, return_state=True))
        >>> last, *states = layer(np.ones((2, 5, 4)))
        >>> tuple(last.shape), len(states)  # h and c of both directions
        ((2, 6), 4)
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        merge_mode: str | None = "concat",
        backward_layer: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not isinstance(layer, (keras.layers.RNN, QRNN)) or layer.go_backwards:
            raise ValueError(
                "Bidirectional: layer must be a recurrent layer, such as LSTM, QRNN or RNN(cell), "
                f"with go_backwards=False; received {layer!r}."
            )
        if merge_mode not in MERGES:
            raise ValueError(
                f"Bidirectional: merge_mode must be one of {[*MERGES]}; received {merge_mode!r}."
            )
        self.merge_mode = merge_mode
        self.forward_layer = layer
        self.has_own_backward_layer = backward_layer is not None
        if backward_layer is None:
            config = {**layer.get_config(), "name": f"{layer.name}_backward", "go_backwards": True}
            backward_layer = type(layer).from_config(config)
        _require_backward(layer, backward_layer)
        self.backward_layer = backward_layer
        for way in self._layers_of_both_ways():
            if isinstance(way, keras.layers.RNN):  # as Keras has it
                way.zero_output_for_mask = way.return_sequences
        self.num_states = _num_states(layer) + _num_states(backward_layer)
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
            shapes = [shape for way in self._layers_of_both_ways() for shape in _state_shapes(way)]
            require_states(self, initial_state, shapes, sequences.shape[0])
        run = self._as_one_composite if self._is_one(training) else self._as_two_layers
        outputs, states = run(sequences, initial_state, mask, training)
        outputs = MERGES[self.merge_mode](*outputs)
        if not self.forward_layer.return_state:
            return outputs
        return (*outputs, *states) if self.merge_mode is None else (outputs, *states)

    def _is_one(self, training):
        layers = self._layers_of_both_ways()
        return type(layers[0]) is type(layers[1]) and all(
            isinstance(layer, Recurrent)
            and layer.cell.is_composite
            and layer.activity_regularizer is None
            and layer.units == layers[0].units
            and not (layer.stateful or (training and layer.cell.drops))
            for layer in layers
        )

    def _as_one_composite(self, sequences, initial_state, mask, training):
        cells = [layer.cell for layer in self._layers_of_both_ways()]
        if initial_state is None:
            batch_size = ops.shape(sequences)[0]
            initial_state = [
                zeros for cell in cells for zeros in cell.get_initial_state(batch_size)
            ]
        forward, backward = self._of_each(initial_state)
        weights, backward_weights = (cell.weights_of_step() for cell in cells)
        outputs, *states = cells[0].network.bidirectional(
            sequences, mask, forward, weights, backward, backward_weights
        )
        if not self.forward_layer.return_sequences:
            return [side[0] for side in self._of_each(states)], states
        return [outputs], states

    def _as_two_layers(self, sequences, initial_state, mask, training):
        starts = [None, None] if initial_state is None else self._of_each(initial_state)
        results = [
            layer(sequences, initial_state=start, mask=mask, training=training)
            for layer, start in zip(self._layers_of_both_ways(), starts, strict=True)
        ]
        states = []
        if self.forward_layer.return_state:
            states = [state for _, *side in results for state in side]
            results = [outputs for outputs, *_ in results]
        forward, backward = results
        if self.forward_layer.return_sequences:
            backward = ops.flip(backward, axis=1)
        return [forward, backward], states

    def _layers_of_both_ways(self):
        return [self.forward_layer, self.backward_layer]

    def _of_each(self, states):
        """Return two lists of states, the forward layer's and the backward one's."""
        count = _num_states(self.forward_layer)
        return [list(states[:count]), list(states[count:])]

    def reset_state(self):
        """Begin the next batch at zeros, where the layer is stateful."""
        for layer in self._layers_of_both_ways():
            layer.reset_state()

    def compute_output_shape(self, sequences_shape):
        layers = self._layers_of_both_ways()
        shapes = [layer.compute_output_shape(sequences_shape) for layer in layers]
        states = ()
        if self.forward_layer.return_state:
            states = (*shapes[0][1:], *shapes[1][1:])
            shapes = [outputs for outputs, *_ in shapes]
        if self.merge_mode is None:
            return (*shapes, *states)
        merged = shapes[0]
        if self.merge_mode == "concat":
            merged = (*merged[:-1], merged[-1] + shapes[1][-1])
        return (merged, *states) if states else merged

    def compute_mask(self, sequences, mask=None):
        layer = self.forward_layer
        output_mask = mask if layer.return_sequences else None
        masks = [output_mask] * (2 if self.merge_mode is None else 1)
        masks += [None] * (self.num_states if layer.return_state else 0)
        return tuple(masks) if len(masks) > 1 else output_mask

    def get_config(self):
        config = {
            **super().get_config(),
            "layer": keras.saving.serialize_keras_object(self.forward_layer),
            "merge_mode": self.merge_mode,
        }
        if self.has_own_backward_layer:
            config["backward_layer"] = keras.saving.serialize_keras_object(self.backward_layer)
        return config

    @classmethod
    def from_config(cls, config):
        layers = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("layer", "backward_layer")
            if name in config
        }
        return cls(**{**config, **layers})


def _side_by_side(*outputs):
    """Return the merged outputs of both layers; a composite returns them side by side already."""
    return outputs[0] if len(outputs) == 1 else ops.concatenate(outputs, axis=-1)


def _of_two(merge):
    """Return a function of both layers' outputs, or of those that stand side by side."""
    return lambda *outputs: merge(
        *(outputs if len(outputs) == 2 else ops.split(outputs[0], 2, axis=-1))
    )


MERGES = {
    "concat": _side_by_side,
    "sum": _of_two(lambda forward, backward: forward + backward),
    "mul": _of_two(lambda forward, backward: forward * backward),
    "ave": _of_two(lambda forward, backward: (forward + backward) / 2),
    None: _of_two(lambda forward, backward: (forward, backward)),
}


def _require_backward(layer, backward):
    """Refuse what does not go backwards, or returns something else than the other layer."""
    if not isinstance(backward, (keras.layers.RNN, QRNN)) or not backward.go_backwards:
        raise ValueError(
            "Bidirectional: backward_layer must be a recurrent layer with go_backwards=True; "
            f"received {backward!r}."
        )
    for name in ("return_sequences", "return_state", "stateful"):
        expected, received = getattr(layer, name), getattr(backward, name)
        if expected != received:
            raise ValueError(
                f"Bidirectional: backward_layer must have the layer's {name}, {expected}; received "
                f"{received}."
            )


def _num_states(layer):
    return layer.num_states if isinstance(layer, QRNN) else len(layer.state_size)


def _state_shapes(layer):
    if isinstance(layer, QRNN):
        return layer.state_shapes("batch")
    return [("batch", *as_list(size)) for size in layer.state_size]
