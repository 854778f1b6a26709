"""Lowering of composites to the fused ONNX operators.

A composite (`seqkeras.composites`) is a function node of the frozen graph that carries its name and
options. tf2onnx calls `lower_function_node` for each composite; one with a lowering here becomes a
fused node: a standard operator if ONNX has one, else ONNX Runtime's own (com.microsoft). A portable
graph has standard operators only.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from tf2onnx import utils

from seqkeras.export.composites import attention, recurrent, scans
from seqkeras.export.composites.builder import MICROSOFT as MICROSOFT
from seqkeras.export.composites.builder import Builder

LOWERINGS = recurrent.LOWERINGS | scans.LOWERINGS | attention.LOWERINGS
PORTABLE_LOWERINGS = recurrent.LOWERINGS | scans.LOWERINGS | attention.PORTABLE_LOWERINGS


def op_handlers(
    graph_def: Any, weights: Mapping[str, np.ndarray], lowerings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the `custom_op_handlers` of tf2onnx for a frozen graph, its weights and composites."""
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
        # By their names, identity, identity_1, ...: freezing drops unused outputs.
        names = [argument.name for argument in function.signature.output_arg]
        places = [int(name.removeprefix("identity").removeprefix("_") or 0) for name in names]
        outputs = dict(zip(places, node.output, strict=True))
        graph.remove_node(node.name)
        lowering(Builder(graph, node, weights), inputs, outputs, **options)

    return {
        "PartitionedCall": (lower_function_node, []),
        # tf2onnx would multiply by the condition and its inverse, and does not know the others.
        "SelectV2": (_become_where, []),
        "Erfc": (_difference(lambda builder, one, x: [one, builder.add("Erf", [x])]), []),
        "Expm1": (_difference(lambda builder, one, x: [builder.add("Exp", [x]), one]), []),
    }


def _become_where(graph, node, name, args):
    node.type = "Where"


def _difference(terms):
    """Return a handler that puts the difference of two terms, made of 1 and x, in place of f(x)."""

    def lower(graph, node, name, args):
        builder, [source], [output] = Builder(graph, node), node.input, node.output
        one = np.ones((), utils.map_onnx_to_numpy_type(graph.get_dtype(source)))
        graph.remove_node(node.name)
        builder.add("Sub", terms(builder, builder.constant(one), source), outputs=[output])

    return lower
