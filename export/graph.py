"""An ONNX graph apart from the values of its constants, which few steps read or copy."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from seqkeras.export.symbolic_shapes import infer_shapes, without_contradicted
from seqkeras.serving.opening import Runtime

if TYPE_CHECKING:
    import onnxruntime as ort

LARGE = 1024  # bytes; a larger constant is a weight, not a shape or an axis


class Graph:
    """Nodes, the maker of each tensor, constants, and the sizes of tensors.

    Args:
        model: an `onnx.ModelProto`; this object owns it and removes its initializers.
        weights: name -> array, for inputs that are constant.
    """

    def __init__(self, model: onnx.ModelProto, weights: Mapping[str, np.ndarray] = ()):
        self.model = model
        self.nodes = model.graph.node
        self.constants = dict(weights)
        for tensor in model.graph.initializer:
            self.constants[tensor.name] = numpy_helper.to_array(tensor)
        inputs = [value for value in model.graph.input if value.name not in self.constants]
        _replace(model.graph.initializer, [])
        _replace(model.graph.input, inputs)
        self.makers, self.shapes = {}, {}

    def infer(self) -> onnx.ModelProto:
        """Recompute the maker and the sizes of each tensor; returns a model that declares them."""
        self.makers = {output: node for node in self.nodes for output in node.output}
        inferred = infer_shapes(self.skeleton())
        values = [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]
        self.shapes = {
            value.name: _sizes(value)
            for value in values
            if value.type.tensor_type.HasField("shape")
        }
        return inferred

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The large constants: name -> array."""
        return {name: value for name, value in self.constants.items() if value.nbytes > LARGE}

    def remember_shapes(self, inferred: onnx.ModelProto) -> None:
        """Keep inferred shapes: ONNX Runtime fuses more nodes if it knows the sizes."""
        consistent = without_contradicted(inferred.value_info, self.skeleton())
        _replace(self.model.graph.value_info, consistent)

    def skeleton(self) -> onnx.ModelProto:
        """Return the model with its small constants; the weights are inputs."""
        weights = self.weights
        model = self.with_constants(self.constants.keys() - weights.keys())
        for name, value in weights.items():
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            model.graph.input.append(helper.make_tensor_value_info(name, dtype, value.shape))
        return model

    def whole(self) -> onnx.ModelProto:
        """Return the model with all its constants, as one `onnx.ModelProto`."""
        return self.with_constants(self.constants)

    def with_constants(self, names: Collection[str]) -> onnx.ModelProto:
        """Return the model with the named constants as initializers."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        model.graph.initializer.extend(
            numpy_helper.from_array(value, name)
            for name, value in self.constants.items()
            if name in names
        )
        return model

    def session(self) -> ort.InferenceSession:
        """Return an onnxruntime session of the model, as `serving` opens it on the CPU."""
        return Runtime().session(self.whole().SerializeToString())

    def copy(self, outputs: Collection[str]) -> Graph:
        """Return the part of the graph that computes the named outputs."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        part = Graph(model, self.constants)
        outputs_left = [value for value in model.graph.output if value.name in outputs]
        _replace(model.graph.output, outputs_left)
        part.remove_unused()
        return part

    def node_counts(self) -> dict[str, int]:
        """Return how often each operator occurs, with subgraphs."""
        return dict(collections.Counter(node.op_type for node in _every_node(self.model.graph)))

    def maker(self, name: str, op_type: str) -> onnx.NodeProto | None:
        """Return the node that computes a tensor if it has that type, else None."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type == op_type else None

    def shape(self, name: str) -> Sequence[int | str] | None:
        """Return a tensor's sizes, numbers or symbols; None if they are not all known."""
        if name in self.constants:
            return self.constants[name].shape
        return self.shapes.get(name)

    def constant(self, name: str) -> np.ndarray | None:
        """Return the value of a constant tensor, else None."""
        return self.constants.get(name)

    def is_constant(self, name: str, value: Any) -> bool:
        """Return whether a tensor is constant and equal to a value."""
        known = self.constant(name)
        return known is not None and np.array_equal(known, np.array(value))

    def is_close(self, name: str, number: float) -> bool:
        """Return whether a tensor is one constant number, up to rounding."""
        known = self.constant(name)
        return known is not None and known.size == 1 and bool(np.isclose(known, number).all())

    def unmoved(self, name: str, op_type: str = "Identity") -> list[str]:
        """Return a tensor and its predecessors with the same numbers in the same order.

        Skips nodes of `op_type`, Identities, and pairs of Transposes that undo each other.
        """
        names = [name]
        while node := (
            self.maker(name, op_type) or self.maker(name, "Identity") or self._undone(name)
        ):
            name = node.input[0]
            names.append(name)
        return names

    def reshaped_from(self, name: str, shape: Sequence[Any]) -> str | None:
        """Return the earliest tensor of that shape that Reshapes made this one of, or None."""
        fitting = [
            tensor for tensor in self.unmoved(name, "Reshape") if self.shape(tensor) == shape
        ]
        return fitting[-1] if fitting and shape else None

    def _undone(self, name):
        """Return the Transpose that is undone by the one that computes a tensor, else None."""
        second = self.maker(name, "Transpose")
        first = second and self.maker(self.unmoved(second.input[0])[-1], "Transpose")
        if not first:
            return None
        perms = [attributes_of(node)["perm"] for node in (first, second)]
        both = [perms[0][axis] for axis in perms[1]]
        return first if both == sorted(both) else None

    def insert(self, index: int, *nodes: onnx.NodeProto) -> None:
        """Insert nodes before the node at an index."""
        for node in reversed(nodes):
            self.nodes.insert(index, node)

    def declare_domains(self) -> None:
        """Declare the operator sets that nodes belong to, and no others."""
        opsets = {opset.domain: opset for opset in self.model.opset_import}
        used = {node.domain for node in _every_node(self.model.graph)} | {""}
        _replace(
            self.model.opset_import,
            [opsets.get(domain) or helper.make_opsetid(domain, 1) for domain in sorted(used)],
        )

    def pass_identities(self) -> None:
        """Skip Identities, and pairs of Transposes that undo each other."""
        for node in _every_node(self.model.graph):
            for index, name in enumerate(node.input):
                node.input[index] = self.unmoved(name)[-1]

    def remove_unused(self) -> None:
        """Remove nodes and constants that no output needs."""
        graph = self.model.graph
        needed = {output.name for output in graph.output}
        used = []
        for node in reversed(graph.node):
            if needed & set(node.output):
                used.append(node)
                needed.update(_read_by(node))
        _replace(graph.node, used[::-1])
        _replace(graph.value_info, [value for value in graph.value_info if value.name in needed])
        self.constants = {name: value for name, value in self.constants.items() if name in needed}


def become(
    node: onnx.NodeProto, op_type: str, inputs: Sequence[str], domain: str = "", **attributes: Any
) -> None:
    """Put another operator in a node's place, with the same output."""
    inputs = list(inputs)
    node.op_type, node.domain = op_type, domain
    del node.input[:]
    del node.attribute[:]
    node.input.extend(inputs)
    node.attribute.extend(helper.make_attribute(*attribute) for attribute in attributes.items())


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes by name."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _replace(repeated, values):
    """Set a repeated field of a protocol buffer to a list."""
    values = list(values)
    del repeated[:]
    repeated.extend(values)


def _every_node(graph):
    """Yield the nodes of a graph and of the subgraphs within."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _every_node(attribute.g)


def _sizes(value):
    sizes = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param
        for dim in value.type.tensor_type.shape.dim
    ]
    return None if "" in sizes else tuple(sizes)


def _read_by(node):
    """Yield the tensors that a node reads, and those that its subgraphs read."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read_by(inner)
        yield from (output.name for output in attribute.g.output)
