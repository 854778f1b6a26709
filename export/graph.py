"""An ONNX graph and what rewrites ask of it: who makes a tensor, its value, its symbolic shape."""

import numpy as np
from onnx import helper, numpy_helper
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference


def infer_shapes(model):
    """A copy of a model that knows the type and the symbolic shape of every tensor."""
    return SymbolicShapeInference.infer_shapes(model, auto_merge=True)


class Graph:
    """Who makes each tensor, which tensors are constant, and the sizes of all.

    Args:
        model: an `onnx.ModelProto`, which the methods change in place.
    """

    def __init__(self, model):
        self.graph = model.graph
        self.makers = {output: node for node in self.graph.node for output in node.output}
        self.constants = {each.name: each for each in self.graph.initializer}
        inferred = infer_shapes(model).graph
        self.shapes = {
            value.name: _sizes(value)
            for value in [*inferred.input, *inferred.value_info, *inferred.output]
            if value.type.tensor_type.HasField("shape")
        }

    def maker(self, name, op_type):
        """The node that makes a tensor if it is of that type, else None."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type == op_type else None

    def shape(self, name):
        """A tensor's sizes, numbers or symbols; None if they are not all known."""
        if name in self.constants:
            return tuple(self.constants[name].dims)
        return self.shapes.get(name)

    def constant(self, name):
        """The value of a constant tensor, else None."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def add_constant(self, name, value):
        """Add a constant tensor of that name."""
        self.graph.initializer.append(numpy_helper.from_array(value, name))
        self.constants[name] = self.graph.initializer[-1]

    def is_constant(self, name, value):
        """Whether a tensor is constant and equal to a value."""
        found = self.constant(name)
        return found is not None and np.array_equal(found, np.array(value))

    def uncast(self, name):
        """The tensor behind any Casts."""
        while node := self.maker(name, "Cast"):
            name = node.input[0]
        return name

    def unmoved(self, name, op_type="Identity"):
        """A tensor and, going back, those that hold the same numbers in the same order.

        Passed are nodes of the type, Identities, and two Transposes of which one undoes the other.
        """
        names = [name]
        while node := (
            self.maker(name, op_type) or self.maker(name, "Identity") or self._undone(name)
        ):
            name = node.input[0]
            names.append(name)
        return names

    def reshaped_from(self, name, shape):
        """The furthest tensor of that shape of which Reshapes may have made this one, or None."""
        fitting = [each for each in self.unmoved(name, "Reshape") if self.shape(each) == shape]
        return fitting[-1] if fitting and shape else None

    def _undone(self, name):
        """The Transpose that the one which makes a tensor undoes, else None."""
        second = self.maker(name, "Transpose")
        first = second and self.maker(self.unmoved(second.input[0])[-1], "Transpose")
        if not first:
            return None
        perms = [attributes_of(node)["perm"] for node in (first, second)]
        both = [perms[0][axis] for axis in perms[1]]
        return first if both == sorted(both) else None

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
        infos = [each for each in self.graph.value_info if each.name in needed]
        del self.graph.value_info[:]
        self.graph.value_info.extend(infos)


def become(node, op_type, inputs, domain="", **attributes):
    """Another operator in a node's place, with the same output."""
    inputs = list(inputs)
    node.op_type, node.domain = op_type, domain
    del node.input[:]
    del node.attribute[:]
    node.input.extend(inputs)
    node.attribute.extend(helper.make_attribute(*each) for each in attributes.items())


def attributes_of(node):
    """A node's attributes by name."""
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _sizes(value):
    sizes = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param
        for dim in value.type.tensor_type.shape.dim
    ]
    return None if "" in sizes else tuple(sizes)


def _read_by(node):
    """The tensors that a node reads, and those that its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read_by(inner)
        yield from (output.name for output in attribute.g.output)
