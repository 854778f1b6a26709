"""Tracing a function of tensors into a TensorFlow graph that holds no variables.

Weights become inputs of the graph, so that no later step copies or compares their values. If that
is impossible, as for a variable that a loop reads, they become constants.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.wrap_function import function_from_graph_def
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from seqkeras import composites
from seqkeras.export.keras_layers import as_composites
from seqkeras.export.signatures import to_trace
from seqkeras.serving.manifest import TensorSpec


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A traced function without variables."""

    graph: tf.Graph
    inputs: list[str]  # names of tensors, in the order of the specs
    outputs: list[str]  # names of tensors, in the order of the sorted names of the results
    weights: dict[str, np.ndarray]  # name of an input tensor -> the array that it stands for


def freeze(
    function: Callable[..., Any], inputs: Sequence[TensorSpec], lowered: Collection[str]
) -> Frozen:
    """Return a traced function as a `Frozen`; the composites in `lowered` are one node each.

    A ValueError names what the function reads that is neither an input nor a variable, such as a
    lookup table.
    """

    def in_nodes(**tensors):
        with composites.as_nodes(lowered), as_composites():
            return {key: tf.identity(value) for key, value in function(**tensors).items()}

    concrete = to_trace(in_nodes, inputs).get_concrete_function()
    reads = _reads(concrete)
    if reads is None:
        constant = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
        if more := constant.inputs[len(inputs) :]:
            names = ", ".join(sorted(tensor.op.name for tensor in more))
            raise ValueError(
                f"the model reads {names}, which is neither an input nor a weight, as a lookup "
                "table is: do that before the model, in its tokenizer."
            )
        return Frozen(constant.graph, _names(constant.inputs), _names(constant.outputs), {})
    return _with_weights_as_inputs(concrete, reads, _names(concrete.inputs[: len(inputs)]))


def _reads(concrete):
    """Return node that reads a variable -> the variable; None if one is not merely read."""
    variables = {id(variable.handle): variable for variable in concrete.variables}
    captured = {
        placeholder.op.name: variables.get(id(outer))
        for outer, placeholder in concrete.graph.captures
    }
    if any(variable is None for variable in captured.values()):  # a tensor was captured
        return None
    reads = {}
    for operation in concrete.graph.get_operations():
        for tensor in operation.inputs:
            if tensor.op.name in captured:
                if operation.type != "ReadVariableOp":
                    return None
                reads[operation.name] = captured[tensor.op.name]
    return reads


def _with_weights_as_inputs(concrete, reads, names):
    first = {}  # variable -> the node that reads it first, which becomes a placeholder
    for name, variable in reads.items():
        first.setdefault(variable.ref(), name)
    graph_def = concrete.graph.as_graph_def()
    for node in graph_def.node:
        if node.name in first.values():
            _become_placeholder(node, reads[node.name])
        for index, name in enumerate(node.input):
            control, name = name.startswith("^"), name.lstrip("^").partition(":")[0]
            if name in reads:
                node.input[index] = "^" * control + first[reads[name].ref()]
    weights = {f"{name}:0": variable.deref() for variable, name in first.items()}
    whole = function_from_graph_def(graph_def, [*weights, *names], _names(concrete.outputs))
    inlined = convert_variables_to_constants_v2(whole, lower_control_flow=False)
    input_of = dict(zip([*weights, *names], _names(inlined.inputs), strict=True))
    return Frozen(
        inlined.graph,
        [input_of[name] for name in names],
        _names(inlined.outputs),
        {input_of[name]: variable.numpy() for name, variable in weights.items()},
    )


def _become_placeholder(node, variable):
    node.op = "Placeholder"
    del node.input[:]
    node.attr.clear()
    node.attr["dtype"].type = variable.dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(variable.shape.as_proto())


def _names(tensors):
    return [tensor.name for tensor in tensors]
