"""Lowering of composites to the fused ONNX operators.

A composite (`seqkeras.composites`) is a function node of the frozen graph that carries its name and
options. tf2onnx calls `lower_function_node` for each composite; one with a lowering here becomes a
fused node: a standard operator if ONNX has one, else ONNX Runtime's own (com.microsoft). A portable
graph has standard operators only.
"""

import json

import numpy as np
from tf2onnx import utils

from seqkeras.export.composites import attention, recurrent, scan
from seqkeras.export.composites.builder import MICROSOFT, Builder

__all__ = ["LOWERINGS", "MICROSOFT", "PORTABLE_LOWERINGS", "op_handlers"]

RECURRENT = recurrent.LOWERINGS | scan.LOWERINGS
LOWERINGS = RECURRENT | attention.LOWERINGS
PORTABLE_LOWERINGS = RECURRENT | attention.PORTABLE_LOWERINGS


def op_handlers(graph_def, weights, lowerings):
    """Return the `custom_op_handlers` of tf2onnx for a frozen graph and its composites.

    Args:
        weights: name -> array, of its constant inputs.
    """
    functions = {
        function.signature.name: function
        for function in graph_def.library.function
        if "_implements" in function.attr
    }

    def lower_function_node(graph, node, name, args):
        function = functions.get(node.get_attr_str("f"))
        if function is None:
            raise ValueError(f"{node.name}: a call of a function that is no composite.")
        options = json.loads(function.attr["_implements"].s)
        lowering = lowerings[options.pop("composite")]
        input_names = [argument.name for argument in function.signature.input_arg]
        inputs = dict(zip(input_names, node.input, strict=True))
        # By their names: freezing drops unused outputs.
        places = [_output_index(argument.name) for argument in function.signature.output_arg]
        outputs = dict(zip(places, node.output, strict=True))
        graph.remove_node(node.name)
        lowering(Builder(graph, node, weights), inputs, outputs, **options)

    return {
        "PartitionedCall": (lower_function_node, []),
        "SelectV2": (_lower_select, []),
        "Erfc": (_lower_erfc, []),
        "Expm1": (_lower_expm1, []),
    }


def _lower_select(graph, node, name, args):
    """Lower `where` to ONNX's Where; tf2onnx would multiply by the condition and its inverse."""
    Builder(graph, node).replace(node, "Where")


def _lower_erfc(graph, node, name, args):
    """Lower erfc(x) = 1 - erf(x), which tf2onnx does not know; `export.rewrites` finds GELU in
    it."""
    builder, one, [source], [output] = _without_node(graph, node)
    builder.add("Sub", [one, builder.add("Erf", [source])], outputs=[output])


def _lower_expm1(graph, node, name, args):
    """Lower expm1(x) = exp(x) - 1, which tf2onnx does not know."""
    builder, one, [source], [output] = _without_node(graph, node)
    builder.add("Sub", [builder.add("Exp", [source]), one], outputs=[output])


def _without_node(graph, node):
    """Return a builder in place of a node, a 1 of its type, and the node's inputs and outputs."""
    builder, inputs, outputs = Builder(graph, node), node.input, node.output
    one = builder.constant(np.ones((), utils.map_onnx_to_numpy_type(graph.get_dtype(inputs[0]))))
    graph.remove_node(node.name)
    return builder, one, inputs, outputs


def _output_index(name):
    """Return which result of a traced function an output is: they are named identity, identity_1,
    ..."""
    return int(name.removeprefix("identity").removeprefix("_") or 0)
