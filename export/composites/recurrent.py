"""Recurrent composites as the fused ONNX operators, between transposes to time-major and back."""

import numpy as np
from onnx import TensorProto
from tf2onnx import utils

from export.composites.layouts import LAYOUTS

WEIGHTS = ["kernel", "recurrent_kernel", "bias"]


def lowerings_of(name, layout):
    """Composite -> lowering: of a network in one direction, and in both."""

    def lower(builder, inputs, outputs, reverse):
        direction = "reverse" if reverse else "forward"
        _add_recurrent_node(builder, layout, direction, inputs, [""], outputs)

    def lower_bidirectional(builder, inputs, outputs):
        sides = ["forward_", "backward_"]
        _add_recurrent_node(builder, layout, "bidirectional", inputs, sides, outputs)

    return {name: lower, f"bidirectional_{name}": lower_bidirectional}


def _add_recurrent_node(builder, layout, direction, inputs, sides, outputs):
    """One recurrent node; `sides` are the prefixes of its inputs' names, `outputs` by index."""
    states = [
        [tensor for name, tensor in inputs.items() if name.startswith(f"{side}states_")]
        for side in sides
    ]
    weights = [
        layout.weights(
            *(
                builder.value(inputs[f"{side}weights_{index}"], name)
                for index, name in enumerate(WEIGHTS)
            )
        )
        for side in sides
    ]
    kernels, recurrent_kernels, biases = zip(*weights, strict=True)
    units = recurrent_kernels[0].shape[0]
    lengths = (
        builder.add("Cast", [inputs["mask"]], to=TensorProto.INT32) if "mask" in inputs else ""
    )
    results = ["sequence", *states[0]]
    names = [utils.make_name(f"{builder.name}/{layout.operator}") for _ in results]
    builder.add(
        layout.operator,
        [
            builder.add("Transpose", [inputs["sequence"]], perm=[1, 0, 2]),  # (T, B, D)
            builder.constant(np.stack([kernel.T for kernel in kernels])),
            builder.constant(np.stack([kernel.T for kernel in recurrent_kernels])),
            builder.constant(np.stack(biases)),
            lengths,
            *[_stack(builder, pair) for pair in zip(*states, strict=True)],
        ],
        outputs=names,
        hidden_size=units,
        direction=direction,
        **{
            name: value * len(sides) if isinstance(value, list) else value
            for name, value in layout.attributes.items()
        },
    )
    if 0 in outputs:
        _give_sequence(builder, names[0], outputs[0], len(sides), units)
    initial = [state for own in states for state in own]
    final = [(name, side) for side in range(len(sides)) for name in names[1:]]
    for index, (state, (name, side)) in enumerate(zip(initial, final, strict=True)):
        if 1 + index in outputs:
            _give_final_state(builder, name, side, outputs[1 + index], lengths, state)


def _stack(builder, states):
    """(B, U) states, one per direction, as (directions, B, U)."""
    rows = [builder.add("Unsqueeze", [state, builder.integers(0)]) for state in states]
    return rows[0] if len(rows) == 1 else builder.add("Concat", rows, axis=0)


def _give_sequence(builder, name, output, directions, units):
    """Transpose (T, directions, B, U) to (B, T, directions U)."""
    if directions == 1:
        squeezed = builder.add("Squeeze", [name, builder.integers(1)])
        builder.add("Transpose", [squeezed], outputs=[output], perm=[1, 0, 2])
    else:
        swapped = builder.add("Transpose", [name], perm=[2, 0, 1, 3])
        shape = builder.integers(0, 0, directions * units)
        builder.add("Reshape", [swapped, shape], outputs=[output])


def _give_final_state(builder, name, side, output, lengths, initial_state):
    """(directions, B, U) to the (B, U) of one direction; an empty row keeps its initial state.

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
    name: lower
    for network, layout in LAYOUTS.items()
    for name, lower in lowerings_of(network, layout).items()
}
