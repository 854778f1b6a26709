"""Recurrent composites as the fused ONNX operators, between transposes to time-major and back.

The operators know lengths only. Of a mask with gaps the real steps of each row come first, in their
order, and the outputs go back to where they were: a branch of the graph, which right-padded masks
do not take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto
from tf2onnx import utils

from seqkeras.export.composites.layouts import LAYOUTS

if TYPE_CHECKING:
    from seqkeras.export.composites.builder import Builder
    from seqkeras.export.composites.layouts import Layout

END = np.iinfo(np.int64).max  # of a slice without an end
WEIGHTS = ["kernel", "recurrent_kernel", "bias"]


def lowerings_of(name: str, layout: Layout) -> dict[str, Callable[..., Any]]:
    """Return a dictionary: composite -> lowering: of a network in one direction, and in both."""

    def lower(builder, inputs, outputs, reverse):
        direction = "reverse" if reverse else "forward"
        _add_recurrent_node(builder, layout, direction, inputs, [""], outputs)

    def lower_bidirectional(builder, inputs, outputs):
        sides = ["forward_", "backward_"]
        _add_recurrent_node(builder, layout, "bidirectional", inputs, sides, outputs)

    return {name: lower, f"bidirectional_{name}": lower_bidirectional}


def _add_recurrent_node(builder, layout, direction, inputs, sides, outputs):
    """Add one recurrent node; `sides` are the prefixes of its inputs' names, `outputs` by index."""
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
    padding = Padding(builder, inputs["mask"]) if "mask" in inputs else None
    lengths = padding.lengths if padding else ""
    sequence = inputs["sequence"]
    time_major = padding.compact if padding else builder.transpose
    results = ["sequence", *states[0]]
    names = [utils.make_name(f"{builder.name}/{layout.operator}") for _ in results]
    builder.add(
        layout.operator,
        [
            time_major(sequence, [1, 0, 2]),  # (T, B, D)
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
        _give_sequence(builder, names[0], outputs[0], len(sides), units, padding)
    final = [
        (name, side, state)
        for side, initial in enumerate(states)
        for name, state in zip(names[1:], initial, strict=True)
    ]
    for index, (name, side, state) in enumerate(final, start=1):
        if index in outputs:
            _give_final_state(builder, name, side, outputs[index], lengths, state)


def _stack(builder, states):
    """Return (B, U) states, one per direction, as (directions, B, U)."""
    rows = [builder.add("Unsqueeze", [state, builder.integers(0)]) for state in states]
    return rows[0] if len(rows) == 1 else builder.add("Concat", rows, axis=0)


def _give_sequence(builder, name, output, directions, units, padding):
    """Transpose (T, directions, B, U) to (B, T, directions U)."""
    batch_major = padding.spread if padding else builder.transpose
    if directions == 1:
        squeezed = builder.add("Squeeze", [name, builder.integers(1)])
        builder.add("Identity", [batch_major(squeezed, [1, 0, 2])], outputs=[output])
    else:
        swapped = batch_major(name, [2, 0, 1, 3])
        shape = builder.integers(0, 0, directions * units)
        builder.add("Reshape", [swapped, shape], outputs=[output])


class Padding:
    """The padding of a recurrent node's rows by a mask (B, T), and their (B,) `lengths`."""

    def __init__(self, builder: Builder, mask: str):
        if builder.graph.get_dtype(mask) != TensorProto.BOOL:
            mask = builder.add("Cast", [mask], to=TensorProto.BOOL)
        self.builder, self.mask = builder, mask
        real = builder.add("Cast", [mask], to=TensorProto.INT32)
        self.lengths = builder.add("ReduceSum", [real, builder.integers(1)], keepdims=0)
        after, before = (
            builder.add("Slice", [real, *map(builder.integers, (start, end, 1))])
            for start, end in ((1, END), (0, -1))
        )
        begins = builder.add("Cast", [builder.add("Less", [before, after])], to=TensorProto.INT32)
        gaps = builder.add("ReduceSum", [begins], keepdims=0)
        none = builder.constant(np.array(0, np.int32))
        self.is_right = builder.add("Equal", [gaps, none])

    def compact(self, sequence: str, perm: Sequence[int]) -> str:
        """Return a sequence (B, T, ...) transposed, with the real steps of each row first."""

        def gathered(builder, sequence):
            steps = self._order(builder)
            return builder.transpose(self._take(builder, sequence, steps, len(perm)), perm)

        return self._branch(sequence, perm, gathered)

    def spread(self, sequence: str, perm: Sequence[int]) -> str:
        """Return a sequence transposed to (B, T, ...), its steps in place; masked ones are zero."""

        def scattered(builder, sequence):
            steps, sequence = self._places(builder), builder.transpose(sequence, perm)
            return self._take(builder, sequence, steps, len(perm))

        return self._branch(sequence, perm, scattered)

    def _branch(self, sequence, perm, otherwise):
        def then(builder, sequence):
            return builder.transpose(sequence, perm)

        shape = self.builder.shape(sequence) or [-1] * len(perm)
        shape = [shape[axis] for axis in perm]
        return self.builder.add_if(self.is_right, sequence, then, otherwise, shape)

    def _order(self, builder):
        """Return (B, T) the steps in the node's order: the real ones first."""
        length, steps = self.steps(builder)
        behind = builder.add("Add", [steps, length])
        keys = builder.add("Where", [self.mask, steps, behind])
        outputs = [utils.make_name(f"{builder.name}/{part}") for part in ("keys", "order")]
        return builder.add("TopK", [keys, length], outputs=outputs, axis=1, largest=0)[1]

    def _places(self, builder):
        """Return (B, T) the place of each step's output: of a masked one the zero after all."""
        length, _ = self.steps(builder)
        one = builder.integers(1)
        real = builder.add("Cast", [self.mask], to=TensorProto.INT64)
        count = builder.add("CumSum", [real, builder.constant(np.array(1, np.int64))])
        places, last = (builder.add("Sub", [number, one]) for number in (count, length))
        return builder.add("Where", [self.mask, places, last])

    def steps(self, builder: Builder) -> tuple[str, str]:
        """Return (1,) T, and (T,) the numbers from 0 to T - 1."""
        length = builder.add("Shape", [self.mask], start=1, end=2)
        end = builder.add("Squeeze", [length, builder.integers(0)])
        zero, one = (builder.constant(np.array(number, np.int64)) for number in (0, 1))
        return length, builder.add("Range", [zero, end, one])

    def _take(self, builder, sequence, steps, rank):
        """Return the steps (B, T) of a sequence (B, T, ...)."""
        steps = builder.add("Unsqueeze", [steps, builder.integers(*range(2, rank))])
        steps = builder.add("Expand", [steps, builder.add("Shape", [sequence])])
        return builder.add("GatherElements", [sequence, steps], axis=1)


def _give_final_state(builder, name, side, output, lengths, initial_state):
    """Give (B, U) of one of the (directions, B, U); an empty row keeps its initial state.

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
