"""Recurrent composites as the fused ONNX operators, between transposes from batch-major to theirs.

Gate orders: ONNX LSTM i, o, f, c against Keras i, f, c, o; GRU z, r, h in both.

A simple recurrent network becomes an LSTM whose gates are constants: i = o = 1, f = 0, and no
second tanh. ONNX Runtime's RNN node computes its activations one number at a time (batch 8, 128
steps, 256 units, two cores: 4.1 ms against 3.0; batch 1: 0.8 against 1.2).
"""

import numpy as np
from onnx import TensorProto
from tf2onnx import utils

LSTM_GATES = [0, 3, 1, 2]  # Keras's place of ONNX's i, o, f, c


def _rnn(weights):
    kernel, recurrent_kernel, bias = weights
    units = len(bias)
    kernel, recurrent_kernel = (
        np.pad(w, [(0, 0), (3 * units, 0)]) for w in (kernel, recurrent_kernel)
    )
    gates = np.repeat(np.float32([OPEN, OPEN, -OPEN]), units)  # i, o, f
    return kernel, recurrent_kernel, np.concatenate([gates, bias, np.zeros(4 * units, np.float32)])


def _lstm(weights):
    kernel, recurrent_kernel, bias = (_reorder(each, LSTM_GATES) for each in weights)
    return kernel, recurrent_kernel, np.concatenate([bias, np.zeros_like(bias)])


def _gru(weights):
    kernel, recurrent_kernel, bias = weights
    return kernel, recurrent_kernel, bias.reshape(-1)


def _reorder(weight, gates):
    parts = np.split(weight, len(gates), axis=-1)
    return np.concatenate([parts[gate] for gate in gates], axis=-1)


OPEN = 100.0  # sigmoid(100) is 1 and sigmoid(-100) is 0 to the last digit of a float
CONSTANT_GATES = {  # per direction: of the gates, of the candidate, and none between c and h
    "activations": ["Sigmoid", "Tanh", "Affine"],
    "activation_alpha": [1.0],
    "activation_beta": [0.0],
}
# composite: ONNX operator, its attributes, weights in its layout, number of states
OPERATORS = {
    "rnn": ("LSTM", CONSTANT_GATES, _rnn, 1),
    "lstm": ("LSTM", {}, _lstm, 2),
    "gru": ("GRU", {"linear_before_reset": 1}, _gru, 1),
}
STATES = ["initial_state", "initial_cell"]
WEIGHTS = ["kernel", "recurrent_kernel", "bias"]


def _lower_recurrence(cell):
    def lower(builder, inputs, outputs, reverse):
        num_states = OPERATORS[cell][-1]
        direction = "reverse" if reverse else "forward"
        tensors = [inputs[name] for name in STATES[:num_states] + WEIGHTS]
        _add_recurrent_node(builder, cell, direction, inputs, [tensors], outputs)

    return lower


def _lower_bidirectional(builder, inputs, outputs, cell):
    tensors = [
        [inputs[f"{side}_{index}"] for index in range(OPERATORS[cell][-1] + len(WEIGHTS))]
        for side in ("forward", "backward")
    ]
    _add_recurrent_node(builder, cell, "bidirectional", inputs, tensors, outputs)


def _add_recurrent_node(builder, cell, direction, inputs, tensors, outputs):
    """One recurrent node; `tensors` holds states and weights per direction, `outputs` by index."""
    operator, attributes, layout, num_states = OPERATORS[cell]
    states = [each[:num_states] for each in tensors]
    weights = [
        layout([builder.value(*pair) for pair in zip(each[num_states:], WEIGHTS, strict=True)])
        for each in tensors
    ]
    kernels, recurrent_kernels, biases = zip(*weights, strict=True)
    units = recurrent_kernels[0].shape[0]
    lengths = (
        builder.add("Cast", [inputs["mask"]], to=TensorProto.INT32) if "mask" in inputs else ""
    )
    names = [utils.make_name(f"{builder.name}/{operator}") for _ in range(1 + num_states)]
    builder.add(
        operator,
        [
            builder.add("Transpose", [inputs["sequence"]], perm=[1, 0, 2]),  # (T, B, D)
            builder.constant(np.stack([kernel.T for kernel in kernels])),
            builder.constant(np.stack([kernel.T for kernel in recurrent_kernels])),
            builder.constant(np.stack(biases)),
            lengths,
            *[_stack(builder, each) for each in zip(*states, strict=True)],
        ],
        outputs=names,
        hidden_size=units,
        direction=direction,
        **{
            name: value * len(tensors) if isinstance(value, list) else value
            for name, value in attributes.items()
        },
    )
    if 0 in outputs:
        _give_sequence(builder, names[0], outputs[0], len(tensors), units)
    initial = [state for each in states for state in each]
    final = [(name, side) for side in range(len(tensors)) for name in names[1:]]
    for index, (state, (name, side)) in enumerate(zip(initial, final, strict=True)):
        if 1 + index in outputs:
            _give_final_state(builder, name, side, outputs[1 + index], lengths, state)


def _stack(builder, states):
    """(B, U) states, one per direction, as (directions, B, U)."""
    rows = [builder.add("Unsqueeze", [state, builder.integers(0)]) for state in states]
    return rows[0] if len(rows) == 1 else builder.add("Concat", rows, axis=0)


def _give_sequence(builder, name, output, directions, units):
    """(T, directions, B, U) to (B, T, directions U)."""
    if directions == 1:
        squeezed = builder.add("Squeeze", [name, builder.integers(1)])
        builder.add("Transpose", [squeezed], outputs=[output], perm=[1, 0, 2])
    else:
        swapped = builder.add("Transpose", [name], perm=[2, 0, 1, 3])
        shape = builder.integers(0, 0, directions * units)
        builder.add("Reshape", [swapped, shape], outputs=[output])


def _give_final_state(builder, name, side, output, lengths, initial_state):
    """(directions, B, U) to the (B, U) of one; a row without a step keeps its initial state.

    ONNX Runtime would give such a row zeros.
    """
    row = builder.constant(np.array(side, np.int64))
    if not lengths:
        builder.add("Gather", [name, row], outputs=[output], axis=0)
        return
    empty = builder.add("Equal", [lengths, builder.constant(np.array(0, np.int32))])
    empty = builder.add("Unsqueeze", [empty, builder.integers(1)])
    state = builder.add("Gather", [name, row], axis=0)
    builder.add("Where", [empty, initial_state, state], outputs=[output])


LOWERINGS = {
    "rnn": _lower_recurrence("rnn"),
    "lstm": _lower_recurrence("lstm"),
    "gru": _lower_recurrence("gru"),
    "bidirectional": _lower_bidirectional,
}
