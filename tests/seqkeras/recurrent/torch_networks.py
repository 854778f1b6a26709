"""Our layers with the weights and inputs of a network of torch's (`tests/vectors/recurrent.py`)."""

from keras import ops

from seqkeras.recurrent import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNN,
    SimpleRNNCell,
    StackedCells,
)
from tests.arrays import numbers, right_padded
from tests.autodiff import gradients_of
from tests.seqkeras.recurrent.rivals import assert_same, results_of

CLASSES = {"rnn": (SimpleRNN, SimpleRNNCell), "lstm": (LSTM, LSTMCell), "gru": (GRU, GRUCell)}


def make_layers(cell, units, num_layers, bidirectional, dtype):
    """Our layers, the lowest first; several in one direction are one stack of cells."""
    layer_class, cell_class = CLASSES[cell]
    flags = {"return_sequences": True, "return_state": True, "dtype": dtype}
    if bidirectional:
        return [Bidirectional(layer_class(units, **flags), dtype=dtype) for _ in range(num_layers)]
    if num_layers > 1:
        cells = [cell_class(units, dtype=dtype) for _ in range(num_layers)]
        return [RNN(StackedCells(cells, dtype=dtype), **flags)]
    return [layer_class(units, **flags)]


def assert_torch_agrees(arrays, cell, lengths, dtype, limit, num_layers, bidirectional):
    """Outputs, final states, and the gradients by everything, are those among the arrays."""
    names = ["sequences", *(name for name in arrays if name.startswith(("state_", "weight_")))]
    num_states = sum(name.startswith("state_") for name in names)
    finals = [f"final/{name}" for name in names[1 : num_states + 1]]
    units = arrays["state_0h"].shape[-1]
    layers = make_layers(cell, units, num_layers, bidirectional, dtype)
    width = arrays["sequences"].shape[-1]
    for layer in layers:
        layer.build((None, None, width))
        width = 2 * units
    mask = None if lengths is None else right_padded(lengths, max(lengths))

    def results(values):
        x, *others = values
        initial, weights, final = others[:num_states], others[num_states:], []
        for layer in layers:
            count, own = len(layer.trainable_variables), num_states // len(layers)
            x, *states = results_of(layer, weights[:count], x, initial[:own], mask)
            weights, initial, final = weights[count:], initial[own:], final + states
        return [x, *final]

    upstream = [arrays[f"upstream/{each}"] for each in ["outputs", *names[1 : num_states + 1]]]

    def loss(values):
        pairs = zip(results(values), upstream, strict=True)
        return sum(ops.sum(each * ops.cast(other, each.dtype)) for each, other in pairs)

    values = [arrays[name].astype(dtype) for name in names]
    found = numbers(results([ops.convert_to_tensor(each) for each in values]))
    assert_same(
        (found, gradients_of(loss, values)),
        (
            [arrays[name] for name in ("outputs", *finals)],
            [arrays[f"gradient/{name}"] for name in names],
        ),
        limit,
    )
