"""Rewrites around recurrent nodes that simplify the general form of composites.

states of zeros    Expand of 0, into a recurrent node               ->  none, which means zeros
rows of no steps   Where(lengths == 0, zeros, the final state)      ->  the final state
lengths of a mask  Where(right-padded, sum, -1) of range < lengths  ->  the sum
"""

from export.graph import become

OPERATORS = ("GRU", "LSTM")
STATES = 5  # the first input of a recurrent node that is an initial state


def begin_at_zeros(graph, node):
    """Leave out initial states that are zeros."""
    if node.op_type in OPERATORS and all(_is_zeros(graph, name) for name in node.input[STATES:]):
        del node.input[STATES:]


def end_at_zeros(graph, node):
    """Pass the final state on: ONNX Runtime's node itself gives empty rows zeros."""
    if node.op_type != "Where" or not _is_zeros(graph, node.input[1]):
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


def assume_right_padded(graph, node):
    """A mask made of lengths is padded on the right."""
    if node.op_type != "Where" or not graph.is_constant(node.input[2], -1):
        return
    total = graph.maker(node.input[1], "ReduceSum")
    mask = total and graph.uncast(total.input[0])
    if mask and _is_right_padded(graph, mask) and _checks_right_padding(graph, node.input[0], mask):
        become(node, "Identity", node.input[1:2])


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
    """Whether a mask (B, T) is `steps < lengths`."""
    less = graph.maker(mask, "Less")
    steps, lengths = (_rows(graph, name) for name in less.input) if less else (None, None)
    steps = steps and graph.maker(steps[0], "Range") and steps[1] == [0]
    return bool(steps and lengths and lengths[1] == [1])


def _rows(graph, name):
    """The input of an Unsqueeze to rank 2, without Casts, and its axes."""
    node = graph.maker(_plain(graph, name), "Unsqueeze")
    axes = node and graph.constant(node.input[1])
    return None if axes is None or not node else (_plain(graph, node.input[0]), axes.tolist())


def _plain(graph, name):
    """A tensor before Casts and Identities."""
    while (before := graph.unmoved(graph.uncast(name))[-1]) != name:
        name = before
    return name


def _checks_right_padding(graph, condition, mask):
    """Whether a condition checks that no step of a mask exceeds the one before."""
    for op_type in ("Not", "Greater", "ReduceSum", "Cast", "Not", "LessOrEqual"):
        node = graph.maker(condition, op_type)
        if not node:
            return False
        condition = node.input[0]
    slices = [graph.maker(name, "Slice") for name in node.input]
    return all(cut and graph.uncast(cut.input[0]) == mask for cut in slices)
