"""Rewrites of what tf2onnx makes of common Keras code into the one ONNX operator that does it.

    x[:, None]        Unsqueeze, then a Slice that keeps everything    ->  Unsqueeze
    table[indices]    Gather of where(indices < 0, indices + n, ...)   ->  Gather, which does that
    x W, x of rank 3  Reshape to rows, MatMul, Reshape back            ->  MatMul

A rule matches exactly the nodes it replaces; whatever looks different stays as it is.
"""

import numpy as np
from onnx import numpy_helper, shape_inference

WHOLE = 10**9  # tf2onnx's end of a slice that has no end


def simplify(model):
    """Apply the rewrites to an `onnx.ModelProto`, in place."""
    graph = _Graph(model)
    for node in model.graph.node:
        for rewrite in (_pass_whole_slice, _gather_any_sign, _multiply_any_rank):
            rewrite(graph, node)
    graph.remove_unused()


def _pass_whole_slice(graph, node):
    if node.op_type != "Slice":
        return
    starts, ends, _, steps = [graph.constant(name) for name in [*node.input[1:], "", ""][:4]]
    if starts is None or ends is None or (steps is None and len(node.input) > 4):
        return
    if not starts.any() and (ends >= WHOLE).all() and (steps is None or (steps == 1).all()):
        _become(node, "Identity", node.input[:1])


def _gather_any_sign(graph, node):
    where = node.op_type == "Gather" and graph.maker(node.input[1], "Where")
    if not where:
        return
    condition, shifted, indices = where.input
    less, add = graph.maker(condition, "Less"), graph.maker(shifted, "Add")
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    if (
        less
        and add
        and graph.uncast(less.input[0]) == indices
        and graph.is_constant(less.input[1], 0)
        and add.input[0] == indices
        and graph.is_size(add.input[1], node.input[0], axis)
    ):
        node.input[1] = indices


def _multiply_any_rank(graph, node):
    product = node.op_type == "Reshape" and graph.maker(node.input[0], "MatMul")
    rows = product and graph.maker(product.input[0], "Reshape")
    shape = rows and graph.maker(graph.uncast(node.input[1]), "Concat")
    leading = shape and len(shape.input) == 2 and graph.maker(shape.input[0], "Gather")
    source = leading and graph.maker(graph.uncast(leading.input[0]), "Shape")
    if not source or source.input[0] != rows.input[0]:
        return
    kernel = graph.constant(product.input[1])
    rank = graph.ranks.get(rows.input[0])
    if (
        kernel is not None
        and rank is not None
        and graph.is_constant(rows.input[1], [-1, kernel.shape[0]])
        and graph.is_constant(leading.input[1], range(rank - 1))
        and graph.is_constant(shape.input[1], [kernel.shape[1]])
    ):
        _become(node, "MatMul", [rows.input[0], product.input[1]])


def _become(node, op_type, inputs):
    """Another operator in a node's place, with the same output."""
    inputs = list(inputs)
    node.op_type = op_type
    del node.input[:]
    del node.attribute[:]
    node.input.extend(inputs)


def _read_by(node):
    """The tensors that a node reads, and those that its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read_by(inner)
        yield from (output.name for output in attribute.g.output)


class _Graph:
    """Who makes each tensor, which tensors are constant, and their ranks."""

    def __init__(self, model):
        self.graph = model.graph
        self.makers = {output: node for node in self.graph.node for output in node.output}
        self.constants = {each.name: each for each in self.graph.initializer}
        inferred = shape_inference.infer_shapes(model).graph
        self.ranks = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in [*inferred.input, *inferred.value_info, *inferred.output]
            if value.type.tensor_type.HasField("shape")
        }

    def maker(self, name, op_type):
        """The node that makes a tensor if it is of that type, else None."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type == op_type else None

    def constant(self, name):
        """The value of a constant tensor, else None."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def is_constant(self, name, value):
        found = self.constant(name)
        return found is not None and np.array_equal(found, np.array(value))

    def uncast(self, name):
        """The tensor behind any Casts."""
        while node := self.maker(name, "Cast"):
            name = node.input[0]
        return name

    def is_size(self, name, tensor, axis):
        """Whether a scalar is the size of a tensor along an axis."""
        if tensor in self.constants:
            return self.is_constant(name, self.constants[tensor].dims[axis])
        squeeze = self.maker(self.uncast(name), "Squeeze")
        part = squeeze and self.maker(squeeze.input[0], "Slice")
        shape = part and self.maker(self.uncast(part.input[0]), "Shape")
        return bool(
            shape
            and shape.input[0] == tensor
            and self.is_constant(part.input[1], [axis])
            and self.is_constant(part.input[2], [axis + 1])
        )

    def remove_unused(self):
        """Remove nodes and constants that no output needs."""
        needed = {output.name for output in self.graph.output}
        kept = []
        for node in reversed(self.graph.node):
            if needed & set(node.output):
                kept.append(node)
                needed.update(_read_by(node))
        del self.graph.node[:]
        self.graph.node.extend(reversed(kept))
        constants = [each for each in self.graph.initializer if each.name in needed]
        del self.graph.initializer[:]
        self.graph.initializer.extend(constants)
