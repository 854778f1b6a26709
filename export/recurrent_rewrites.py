"""Rewrites around recurrent nodes that simplify the general form of composites.

states of zeros    Expand of 0, into a recurrent node               ->  none, which means zeros
                   Expand of 0, into a Scan                         ->  of the size of a step
rows of no steps   Where(lengths == 0, zeros, the final state)      ->  the final state
a mask of lengths  If(no gaps in range < lengths, Transpose, ...)   ->  the Transpose
layers on layers   steps go back, and real ones come first again    ->  they stay where they are
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from seqkeras.export.graph import attributes_of, become

if TYPE_CHECKING:
    import onnx

    from seqkeras.export.graph import Graph

OPERATORS = ("GRU", "LSTM")
ZERO = "zero_of_a_state"  # a constant
STATES = 5  # the first input of a recurrent node that is an initial state


def begin_at_zeros(graph: Graph, node: onnx.NodeProto) -> None:
    """Leave out initial states that are zeros."""
    if all(_is_zeros(graph, name) for name in node.input[STATES:]):
        del node.input[STATES:]


def begin_loop_at_zeros(graph: Graph, node: onnx.NodeProto) -> None:
    """Read the size of zeros from the steps, so that nobody computes another tensor for it."""
    initial, steps = node.input[:2]
    shapes = graph.shape(initial), graph.shape(steps)
    if not all(shapes) or shapes[0] != shapes[1][1:] or not _is_zeros(graph, initial):
        return
    size, zeros = (f"{initial}/of_{node.output[0]}/{part}" for part in ("size", "zeros"))
    graph.constants[ZERO] = np.array(0, np.float32)
    graph.insert(
        list(graph.nodes).index(node),
        helper.make_node("Shape", [steps], [size], start=1),
        helper.make_node("Expand", [ZERO, size], [zeros]),
    )
    node.input[0] = zeros


def end_at_zeros(graph: Graph, node: onnx.NodeProto) -> None:
    """Pass the final state on: ONNX Runtime's node itself gives empty rows zeros."""
    if not _is_zeros(graph, node.input[1]):
        return
    gather = graph.maker(node.input[2], "Gather")
    recurrent = gather and graph.makers.get(gather.input[0])
    equal = graph.maker(graph.unmoved(node.input[0], "Unsqueeze")[-1], "Equal")
    if (
        recurrent is not None
        and recurrent.op_type in OPERATORS
        and equal
        and equal.input[0] == recurrent.input[4]
        and graph.is_constant(equal.input[1], 0)
    ):
        become(node, "Identity", node.input[2:])


def assume_right_padded(graph: Graph, node: onnx.NodeProto) -> None:
    """Let a mask made of lengths be padded on the right."""
    mask = _mask_of(graph, node)
    if mask and _is_right_padded(graph, mask):
        transpose, _ = _branches(node)
        become(node, "Transpose", transpose[0].input, **attributes_of(transpose[0]))


def stay_compact(graph: Graph, node: onnx.NodeProto) -> None:
    """Keep the steps between two recurrent nodes with one mask in the order of the first."""
    before = graph.maker(graph.unmoved(_source(node))[-1], "If")
    masks = [branch and _mask_of(graph, branch) for branch in (before, node)]
    if not all(masks) or masks[0] != masks[1]:
        return
    (first, *_), (*_, second) = _branches(before)[0], _branches(node)[0]
    spreads = _branches(before)[1][-1].op_type == "GatherElements"
    compacts = _branches(node)[1][-1].op_type == "Transpose"
    perms = [attributes_of(transpose)["perm"] for transpose in (first, second)]
    if spreads and compacts and perms == [[1, 0, 2]] * 2:
        become(node, "Identity", first.input)


def _is_zeros(graph, name):
    value = graph.constant(name)
    if value is not None:
        return not value.any()
    node = graph.makers.get(name)
    if node is None:
        return False
    if node.op_type == "Concat":
        return all(_is_zeros(graph, name) for name in node.input)
    return node.op_type in ("Expand", "Unsqueeze") and _is_zeros(graph, node.input[0])


def _is_right_padded(graph, mask):
    """Return whether a mask (B, T) is `steps < lengths`."""
    less = graph.maker(mask, "Less")
    steps, lengths = (_rows(graph, name) for name in less.input) if less else (None, None)
    steps = steps and graph.maker(steps[0], "Range") and steps[1] == [0]
    return bool(steps and lengths and lengths[1] == [1])


def _rows(graph, name):
    """Return the input of an Unsqueeze to rank 2, without Casts, and its axes, or None."""
    node = graph.maker(graph.unmoved(name, "Cast")[-1], "Unsqueeze")
    axes = node and graph.constant(node.input[1])
    return None if axes is None else (graph.unmoved(node.input[0], "Cast")[-1], axes.tolist())


def _mask_of(graph, node):
    """Return the mask whose gaps an If of `composites.recurrent` asks for, else None."""
    if [inner.op_type for inner in _branches(node)[0]] != ["Transpose"]:
        return None
    name = node.input[0]
    for op_type in ("Equal", "ReduceSum", "Cast", "Less", "Slice"):
        maker = graph.maker(name, op_type)
        if not maker:
            return None
        name = maker.input[0]
    return graph.unmoved(name, "Cast")[-1]


def _source(node):
    """Return the tensor that the first branch of an If reads."""
    return _branches(node)[0][0].input[0]


def _branches(node):
    """Return the nodes of an If: where its condition holds, and where it does not."""
    branches = attributes_of(node)
    return branches["then_branch"].node, branches["else_branch"].node
