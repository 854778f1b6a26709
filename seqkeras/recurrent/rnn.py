"""The loop over steps: RNN(cell), Bidirectional, and the layers SimpleRNN, LSTM, GRU."""

import keras
from keras import ops

from seqkeras import composites
from seqkeras.recurrent.cells import Cell, GRUCell, LSTMCell, SimpleRNNCell
from seqkeras.shapes import require_sequence


class Recurrent(keras.layers.Layer):
    """Base of the recurrent layers; a subclass names its cell.

    Args:
        units: size of the state, U.
        return_sequences: return the output of every step, not only of the last one.
        return_state: return the final states behind the outputs.
        go_backwards: read from the last step to the first; outputs stay in the order of the inputs
            (Keras reverses them), so that padding stays on the right.

    Call arguments:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None. A masked step keeps the state and its
            output is zero. An exported graph takes right-padded masks and refuses others.
        initial_state: list of (B, U), or None for zeros.

    Returns:
        (B, T, U) with `return_sequences`, else (B, U), the output of the last real step; with
        `return_state` a tuple of that and each final state.

    Raises:
        ValueError: if the sequence is not of rank 3.
    """

    cell_class: type[Cell]

    def __init__(
        self,
        units,
        return_sequences=False,
        return_state=False,
        go_backwards=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.cell = self.cell_class(units, dtype=self.dtype_policy, name="cell")
        self.supports_masking = True

    def build(self, sequence_shape):
        require_sequence(self, sequence=sequence_shape)
        self.cell.build((sequence_shape[0], sequence_shape[-1]))

    def call(self, sequence, mask=None, initial_state=None):
        if initial_state is None:
            initial_state = self.cell.get_initial_state(ops.shape(sequence)[0])
        outputs, states = self.cell.run(sequence, mask, initial_state, self.go_backwards)
        result = outputs if self.return_sequences else states[0]
        return (result, *states) if self.return_state else result

    def compute_mask(self, sequence, mask=None, initial_state=None):
        kept = mask if self.return_sequences else None
        return (kept, *[None] * self.cell.num_states) if self.return_state else kept


@keras.saving.register_keras_serializable("seqkeras")
class SimpleRNN(Recurrent):
    """Simple recurrent network; its formula is in `seqkeras.composites.rnn`.

    Reference: Elman 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    cell_class = SimpleRNNCell


@keras.saving.register_keras_serializable("seqkeras")
class LSTM(Recurrent):
    """Long short-term memory; its formula is in `seqkeras.composites.lstm`.

    Reference: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735
    """

    cell_class = LSTMCell


@keras.saving.register_keras_serializable("seqkeras")
class GRU(Recurrent):
    """Gated recurrent unit; its formula is in `seqkeras.composites.gru`.

    Reference: Cho et al. 2014, section 2.3, https://arxiv.org/abs/1406.1078
    """

    cell_class = GRUCell


@keras.saving.register_keras_serializable("seqkeras")
class Bidirectional(keras.layers.Layer):
    """A recurrent layer and its copy that reads backwards, side by side.

        output(t) = [forward h(t); backward h(t)]

    Args:
        layer: a `SimpleRNN`, `LSTM` or `GRU` that returns sequences; its copy is made by config.

    Call arguments:
        sequence: (B, T, D).
        mask: (B, T) booleans, True for real steps, or None.

    Returns:
        (B, T, 2U) outputs; with the layer's `return_state` a tuple of that and the final states,
        the forward layer's first.

    Raises:
        ValueError: if the layer is of another kind, goes backwards, or returns no sequences.

    Reference: Schuster and Paliwal 1997, https://doi.org/10.1109/78.650093
    """

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(layer, Recurrent) or layer.go_backwards or not layer.return_sequences:
            raise ValueError(
                "Bidirectional: layer must be a SimpleRNN, LSTM or GRU with return_sequences=True "
                f"and go_backwards=False; received {layer!r}."
            )
        self.forward_layer = layer
        config = {
            **layer.get_config(),
            "name": f"{layer.name}_backward",
            "go_backwards": True,
        }
        self.backward_layer = type(layer).from_config(config)
        self.supports_masking = True

    def build(self, sequence_shape):
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:  # as a layer from a file is
                layer.build(sequence_shape)

    def call(self, sequence, mask=None):
        batch_size = ops.shape(sequence)[0]
        forward, backward = (
            [*cell.get_initial_state(batch_size), *cell.weights_of_step()]
            for cell in (self.forward_layer.cell, self.backward_layer.cell)
        )
        outputs, *states = composites.bidirectional(
            sequence,
            mask,
            forward,
            backward,
            cell=self.forward_layer.cell.composite.__name__,
        )
        return (outputs, *states) if self.forward_layer.return_state else outputs

    def compute_mask(self, sequence, mask=None):
        states = [None] * (2 * self.forward_layer.cell.num_states)
        return (mask, *states) if self.forward_layer.return_state else mask

    def get_config(self):
        layer = keras.saving.serialize_keras_object(self.forward_layer)
        return {**super().get_config(), "layer": layer}

    @classmethod
    def from_config(cls, config):
        return cls(
            **{
                **config,
                "layer": keras.saving.deserialize_keras_object(config["layer"]),
            }
        )
