"""Recurrent layers in a stream: the state goes in and comes out."""

import keras
from keras import activations, ops, tree

from seqkeras.recurrent import QRNN, Bidirectional, GRUCell, LSTMCell, SimpleRNNCell
from seqkeras.recurrent.rnn import repeated
from seqkeras.recurrent.stacked import as_list, run_cell, sizes_of
from seqkeras.streams.flow import StreamError
from seqkeras.streams.walk import streamed

# Cells of Keras that a network of ours computes, with the same weights.
NETWORKS = {
    keras.layers.SimpleRNNCell: SimpleRNNCell.network,
    keras.layers.LSTMCell: LSTMCell.network,
    keras.layers.GRUCell: GRUCell.network,
}


@streamed.register
def _(layer: keras.layers.RNN, walk, sequences, initial_state=None, mask=None, **_):
    _require_forward(layer, initial_state)
    outputs, real = read(layer, walk, sequences, mask)
    if real is not None and not (layer.return_sequences and layer.zero_output_for_mask):
        name = walk.name(layer, "output")
        before = walk.recall(name, (outputs.shape[-1],), outputs.dtype)
        outputs = repeated(outputs, real, before)
        walk.keep(name, outputs[:, -1])
    if layer.return_sequences:
        return _with_mask(sequences.with_tensor(outputs), real)
    return walk.so_far(layer, sequences, outputs)


def read(layer, walk, sequences, mask=None):
    """Return the outputs (B, T, U) of a recurrent layer at each frame, and where frames are real.

    Args:
        layer: a layer of Keras or ours that reads forwards.
        walk: the `Walk`, which has the layer's states.
        sequences: the `Flow` of its inputs.
        mask: a `Flow` of (B, T) booleans, or None.
    """
    sequence, real = walk.without_padding(sequences, walk.mask_of(sequences, mask))
    if len(sequence.shape) != 3:
        raise StreamError(
            f"{layer.name} ({type(layer).__name__}): a recurrent layer of a stream reads frames of "
            f"one axis; received frames of shape {tuple(sequence.shape[2:])}."
        )
    cells = getattr(layer.cell, "cells", [layer.cell])
    if walk.state is None:
        _require_zeros(layer, cells)
    sizes = [as_list(size) for cell in cells for size in sizes_of(cell)]
    states = _recalled(walk, layer, sizes, sequence.dtype)
    outputs, before, states = sequence, states, []
    for cell in cells:
        count = len(sizes_of(cell))
        outputs, *after = _run(cell, outputs, real, before[:count], walk.training)
        before, states = before[count:], states + after
    _keep(walk, layer, states)
    return outputs, real


@streamed.register
def _(layer: QRNN, walk, sequences, mask=None, initial_state=None, **_):
    _require_forward(layer, initial_state)
    sequence, real = walk.without_padding(sequences, walk.mask_of(sequences, mask))
    shapes = [shape[1:] for shape in layer.state_shapes("batch")]
    before = _recalled(walk, layer, shapes, layer.compute_dtype)
    outputs, states = layer._run(sequence, real, before, walk.training)
    if real is not None:  # the window reads a masked frame as zeros, where the frame stands
        states[1:] = [
            ops.concatenate([past, sequence], axis=1)[:, -past.shape[1] :] for past in before[1:]
        ]
    _keep(walk, layer, states)
    if not layer.return_sequences:
        if real is not None:
            raise StreamError(f"{layer.name}: with masked frames, set return_sequences=True.")
        return walk.so_far(layer, sequences, outputs)
    return _with_mask(sequences.with_tensor(outputs), real)


@streamed.register(Bidirectional)
@streamed.register(keras.layers.Bidirectional)
def _(layer, walk, *args, **kwargs):
    raise _looks_ahead(layer)


def _run(cell, sequence, real, states, training):
    """Return the outputs of a cell over a chunk, and each of its states after it."""
    network = NETWORKS.get(type(cell))
    if network is None or training or not _is_usual(cell):
        outputs, _, states = run_cell(cell, sequence, real, states, False, training)
        return outputs, *states
    return network(sequence, real, states, [cell.kernel, cell.recurrent_kernel, cell.bias])


def _require_zeros(layer, cells):
    """Raise a StreamError unless a cell's own initial state is zeros."""
    for cell in cells:
        first = cell.get_initial_state(batch_size=1) if hasattr(cell, "get_initial_state") else ()
        if any(ops.convert_to_numpy(state).any() for state in tree.flatten(first)):
            raise StreamError(
                f"{layer.name}: {type(cell).__name__}.get_initial_state must return zeros, with "
                "which a stream begins; it returns other numbers."
            )


def _is_usual(cell):
    """Return whether a cell of Keras computes what our network does."""
    gates = getattr(cell, "recurrent_activation", activations.sigmoid)
    return (
        cell.activation is activations.tanh
        and gates is activations.sigmoid
        and cell.use_bias
        and getattr(cell, "reset_after", True)
    )


def _recalled(walk, layer, shapes, dtype):
    return [
        walk.recall(walk.name(layer, f"state_{number}"), tuple(shape), dtype)
        for number, shape in enumerate(shapes)
    ]


def _keep(walk, layer, states):
    for number, state in enumerate(states):
        walk.keep(walk.name(layer, f"state_{number}"), state)


def _with_mask(flow, real):
    if real is not None:
        flow.tensor._keras_mask = real  # as Keras's layers hand a mask on
    return flow


def _require_forward(layer, initial_state):
    if layer.go_backwards:
        raise _looks_ahead(layer)
    if initial_state is not None or layer.return_state:
        raise StreamError(
            f"{layer.name}: a layer of a stream begins at zeros and gives no final state; leave "
            "out initial_state and return_state."
        )


def _looks_ahead(layer):
    return StreamError(
        f"{layer.name} ({type(layer).__name__}) reads from the last frame, and a stream has no "
        "last one; use a layer that reads forwards."
    )
