"""A graph in float16, for GPUs, with its inputs and outputs in float32 as before.

Some values stay in float32: angles of positions (float16 rounds 500 radians to a quarter),
log-probabilities and their order, logits of tokens that may not be chosen, and bodies of loops.
"""

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from seqkeras.export.graph import Graph

MOST = 3e4  # the sum of two is finite
LEAST = 6e-8  # the smallest above zero: no epsilon becomes zero
KEPT = {"LogSoftmax", "TopK", "Range", "CumSum", "Resize", "Loop", "Scan", "If"}
MOVES = {"Transpose", "GatherElements"}  # they compute nothing
ANGLES = {"Sin", "Cos"}
FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
SUFFIXES = {FLOAT: "/float32", FLOAT16: "/float16"}


def to_float16(graph: Graph) -> Graph:
    """Return a copy of an `seqkeras.export.graph.Graph` in float16."""
    return _Half(graph).converted()


class _Half:
    """Converts the nodes in order, and casts each tensor at most once."""

    def __init__(self, graph: Graph):
        self.outputs = {output.name for output in graph.model.graph.output}
        inferred = graph.infer().graph
        self.graph = graph.copy(self.outputs)
        self.constants = self.graph.constants
        values = [*inferred.input, *inferred.value_info, *inferred.output]
        self.floats = {v.name for v in values if v.type.tensor_type.elem_type == FLOAT}
        self.floats |= {n for n, value in self.constants.items() if value.dtype == np.float32}
        self.in_float16, self.made, self.nodes = set(), set(), []

    def converted(self):
        nodes = list(self.graph.nodes)
        angles = _made_of_angles(nodes)
        for index, node in enumerate(nodes):
            is_kept = node.op_type in KEPT and not self._only_moves(node)
            if is_kept or index in angles or self._forbids(node):
                self._read(node, FLOAT)
                self.nodes.append(node)
            else:
                self._convert(node)
        model = self.graph.model
        del model.graph.node[:]
        model.graph.node.extend(self.nodes)
        for value in model.graph.value_info:
            if value.name in self.in_float16:
                value.type.tensor_type.elem_type = FLOAT16
        half = Graph(model, self.constants)
        half.remove_unused()
        return half

    def _only_moves(self, node):
        """Return whether a node is an If whose branches do nothing to floats but move them."""
        floats = set(self.floats)
        for attribute in node.attribute:
            for inner in attribute.g.node:
                if floats & set(inner.input) and inner.op_type != "Shape":
                    if inner.op_type not in MOVES:
                        return False
                    floats.update(inner.output)
        return node.op_type == "If"

    def _forbids(self, node):
        """Return whether a node computes logits of banned tokens, which overflow in float16."""
        constants = [self.constants[name] for name in node.input if name in self.constants]
        kinds = {"Add", "Where"} if node.output[0] in self.outputs else set()
        return node.op_type in kinds and any(np.min(constant) < -MOST for constant in constants)

    def _convert(self, node):
        self._read(node, FLOAT16)
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == FLOAT:
                attribute.i = FLOAT16
            elif attribute.name == "mask_filter_value":
                attribute.f = max(attribute.f, -MOST)
            elif attribute.type == AttributeProto.TENSOR and attribute.t.data_type == FLOAT:
                value = numpy_helper.to_array(attribute.t)
                attribute.t.CopyFrom(numpy_helper.from_array(_half(value)))
            for value in [*attribute.g.value_info, *attribute.g.output]:
                if value.type.tensor_type.elem_type == FLOAT:
                    value.type.tensor_type.elem_type = FLOAT16
        self.nodes.append(node)
        for index, name in enumerate(node.output):
            if name in self.outputs & self.floats:
                node.output[index] = name + SUFFIXES[FLOAT16]
                self.made.add(node.output[index])
                self.nodes.append(helper.make_node("Cast", [node.output[index]], [name], to=FLOAT))
            elif name in self.floats:
                self.in_float16.add(name)

    def _read(self, node, kind):
        for index, name in enumerate(node.input):
            if name in self.floats:
                node.input[index] = self._in(name, kind)
        for attribute in node.attribute:
            for inner in attribute.g.node:
                self._read(inner, kind)

    def _in(self, name, kind):
        """Return the name of a tensor in float32 or in float16."""
        if (kind == FLOAT16) == (name in self.in_float16):
            return name
        other = name + SUFFIXES[kind]
        if other not in self.made:
            self.made.add(other)
            if name in self.constants:
                self.constants[other] = _half(self.constants[name])
            else:
                self.nodes.append(helper.make_node("Cast", [name], [other], to=kind))
        return other


def _half(value):
    """Return numbers in float16; none becomes infinite, and only zeros become zero."""
    size = np.where(value == 0, 0, np.clip(np.abs(value), LEAST, MOST))
    return np.copysign(size, value).astype(np.float16)


def _made_of_angles(nodes):
    """Return indices of all sines and cosines, and of the nodes that compute their inputs.

    A node whose result is read only for its sizes does not count.
    """
    needed, places = set(), set()
    for index, node in reversed(list(enumerate(nodes))):
        if node.op_type == "Shape":
            continue
        if node.op_type in ANGLES or needed & set(node.output):
            needed.update(node.input)
            places.add(index)
    return places
