"""Compose ONNX graphs: run one after another, and a Loop around one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from seqkeras.export.graph import Graph
from seqkeras.export.onnx_graphs import IR_VERSION, OPSET, check_that_it_runs

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature


class GraphComposer:
    """A sequence of graphs as one graph, in which equal weights are stored once."""

    def __init__(self) -> None:
        self.nodes, self.constants, self.names = [], {}, {}

    def constant(self, name: str, value: Any) -> str:
        """Return the name of a constant of that value."""
        key = value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest()
        self.constants.setdefault(self.names.setdefault(key, name), value)
        return self.names[key]

    def add(
        self,
        graph: Graph,
        prefix: str,
        inputs: Mapping[str, str],
        nodes: list[onnx.NodeProto] | None = None,
    ) -> dict[str, str]:
        """Add a graph's nodes; return output name in that graph -> name in this graph.

        Args:
            inputs: name in that graph -> name in this graph.
            nodes: the list of a Loop's body to add to; None for the graph's own list.
        """
        names = dict(inputs)
        for name, value in graph.constants.items():
            names[name] = self.constant(f"{prefix}/{name}", value)
        nodes = self.nodes if nodes is None else nodes
        nodes.extend(_renamed(node, prefix, names) for node in graph.nodes)
        return {
            output.name: names.get(output.name, f"{prefix}/{output.name}")
            for output in graph.model.graph.output
        }

    def node(self, op_type: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        """Add a node of that name; return its output, which has the same name."""
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def apply(self, op_type: str, name: str, constant: np.ndarray) -> str:
        """Return the result of an operator on a tensor and a constant."""
        other = self.constant(f"{name}/{op_type}/constant", constant)
        return self.node(op_type, [name, other], f"{name}/{op_type}")

    def empty_caches(self, step: Signature) -> dict[str, str]:
        """Return the caches of a step before any token: name -> name."""
        return {
            spec.name: self._zeros(spec, [0 if d == "past_length" else d for d in spec.shape[1:]])
            for spec in step.inputs
            if "past_length" in spec.shape
        }

    def zero_states(self, step: Signature) -> dict[str, str]:
        """Return recurrent states of one beam before any token: name -> name."""
        return {
            spec.name: self._zeros(spec, [1, *spec.shape[2:]])
            for spec in step.inputs
            if spec.shape[:2] == ("previous_batch", "previous_beam")
        }

    def _zeros(self, spec, rest):
        """Return zeros with a row for each of the lengths, each of shape `rest`."""
        name = f"zeros/{spec.name}"
        zero, one = (self.constant(f"[{n}]", np.array([n])) for n in (0, 1))
        shape = self.node("Shape", ["lengths"], f"{name}/shape")
        rows = self.node("Slice", [shape, zero, one], f"{name}/rows")
        rest = self.constant(f"{name}/rest", np.array(rest))
        whole = self.node("Concat", [rows, rest], f"{name}/whole", axis=0)
        zeros = helper.make_tensor("zero", _type_of(spec), [1], [0])
        return self.node("ConstantOfShape", [whole], name, value=zeros)

    def loop(
        self,
        step: Graph,
        advance: Graph,
        carried: Mapping[str, str],
        fixed: Mapping[str, str],
        max_length: int,
        going: str | None = None,
    ) -> dict[str, str]:
        """Add a Loop over decoder steps until the search is done; return what the last passes on.

        Dictionaries map names in the parts to names in the composed graph.

        Args:
            carried: what a step passes to the next, with its initial value.
            fixed: what every step reads; state that a step returns is carried.
            going: name of the boolean that decides on the first step; None for true.
        """
        beam_state = [
            output.name.removeprefix("next_")
            for output in step.model.graph.output
            if output.name.startswith("next_")
        ]
        fixed = dict(fixed)
        carried = carried | {name: fixed.pop(name) for name in beam_state if name in fixed}
        step = step.copy(["logits", *(f"next_{name}" for name in beam_state)])
        nodes, inside = [], {name: f"body/{name}" for name in carried}
        last = inside["last"]
        [tokens] = [tensor for tensor in step.model.graph.input if tensor.name == "token_ids"]
        if len(tokens.type.tensor_type.shape.dim) == 3:  # some tokens of each beam
            last = "body/last/one"
            axis = self.constant("[2]", np.array([2]))
            nodes.append(helper.make_node("Unsqueeze", [inside["last"], axis], [last]))
        stepped = self.add(step, "step", fixed | inside | {"token_ids": last}, nodes)
        feeds = fixed | inside | {"logits": stepped["logits"]}
        after = stepped | self.add(advance, "advance", feeds, nodes)
        types = {
            value.name: value.type.tensor_type.elem_type
            for value in [*step.model.graph.output, *advance.model.graph.output]
        }
        body = helper.make_graph(
            nodes,
            "body",
            [
                helper.make_tensor_value_info("body/turn", TensorProto.INT64, ()),
                helper.make_tensor_value_info("body/going", TensorProto.BOOL, ()),
                *(_of_any_shape(inside[name], types[f"next_{name}"]) for name in carried),
            ],
            [
                helper.make_tensor_value_info(after["going"], TensorProto.BOOL, ()),
                *(_of_any_shape(after[f"next_{name}"], types[f"next_{name}"]) for name in carried),
            ],
        )
        results = {name: f"loop/{name}" for name in carried}
        turns = self.constant("turns", np.array(max_length))
        going = going or self.constant("going", np.array(True))
        inputs = [turns, going, *carried.values()]
        self.nodes.append(helper.make_node("Loop", inputs, [*results.values()], body=body))
        return results

    def finish(
        self, results: Graph, carried: Mapping[str, str], inputs: Sequence[Any], given: Any = ()
    ) -> Graph:
        """Return the composed graph, checked by opening a session.

        The last part, `results`, may read what is carried and given: name there -> name here.
        """
        outputs = results.model.graph.output
        names = self.add(results, "results", {**carried, **dict(given)})
        for spec in outputs:
            self.node("Identity", [names[spec.name]], spec.name)
        values = [
            helper.make_tensor_value_info(spec.name, _type_of(spec), spec.shape) for spec in inputs
        ]
        graph = helper.make_graph(self.nodes, "generate", values, list(outputs))
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        whole = Graph(model, self.constants)
        whole.declare_domains()
        # Symbolic shape inference fails for a loop whose state grows; the parts have passed it.
        check_that_it_runs(whole, "generate")
        return whole


def _of_any_shape(name, dtype):
    return helper.make_tensor_value_info(name, dtype, None)


def _type_of(spec):
    return helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))


def _renamed(node, prefix, names):
    """Return a copy of a node, and of its subgraphs, with the composed graph's names of tensors.

    A node without a name, as ONNX allows, stays without.
    """
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = node.name and f"{prefix}/{node.name}"
    for tensors in (copy.input, copy.output):
        tensors[:] = [tensor and names.get(tensor, f"{prefix}/{tensor}") for tensor in tensors]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            graph = attribute.g
            inner = [_renamed(inner_node, prefix, names) for inner_node in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
            for value in [*graph.input, *graph.output, *graph.initializer, *graph.value_info]:
                value.name = names.get(value.name, f"{prefix}/{value.name}")
    return copy
