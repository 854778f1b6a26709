"""Adding ONNX nodes to a graph of tf2onnx."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tf2onnx import utils

MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators


class Builder:
    """Adds ONNX nodes to a tf2onnx graph in place of a function node."""

    def __init__(
        self,
        graph: Any,
        node: Any,
        weights: Mapping[str, np.ndarray] | Iterable[tuple[str, np.ndarray]] = (),
    ):
        self.graph = graph
        self.weights = dict(weights)
        self.name = node.name

    def add(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Add a node; return the name of its output, or the names if `outputs` gives them."""
        node = self.graph.make_node(
            op_type,
            inputs,
            attr=attributes,
            domain=domain,
            name=utils.make_name(f"{self.name}/{op_type}"),
            **({} if outputs is None else {"outputs": outputs}),
        )
        if domain == MICROSOFT:  # of which ONNX infers nothing
            for output in node.output:
                self.graph.set_dtype(output, self.graph.get_dtype(inputs[0]))
        return node.output if outputs else node.output[0]

    def transpose(self, tensor: str, perm: Sequence[int]) -> str:
        """Return a tensor with its axes in another order."""
        return self.add("Transpose", [tensor], perm=perm)

    def add_scan(
        self,
        initial: str,
        sequences: Sequence[str],
        step: Callable[..., str],
        reverse: bool = False,
    ) -> tuple[str, str]:
        """Return the last state, and all states, of a loop over the first axis of sequences.

        Args:
            step: (builder, state, an element of each sequence) -> the next state.
            reverse: from the last element to the first; results stay in the order of the elements.
        """
        name, dtype = utils.make_name(f"{self.name}/Scan"), self.graph.get_dtype(initial)
        body = self.graph.create_new_graph_with_same_config()
        body.parent_graph = self.graph
        places = [f"{name}/{part}" for part in ("state", *map(str, range(len(sequences))))]
        for inner_name, tensor in zip(places, [initial, *sequences], strict=True):
            shape = self.shape(tensor)
            body.add_graph_input(inner_name, dtype, shape[tensor != initial :])
        inner = Builder(body, self)
        after = step(inner, *places)
        shape = self.shape(initial)
        for output in (after, inner.add("Identity", [after])):
            body.set_shape(output, shape)
            body.add_graph_output(output, dtype, shape)
        node = self.graph.make_node(
            "Scan",
            [initial, *sequences],
            attr={
                "num_scan_inputs": len(sequences),
                "scan_input_directions": [int(reverse)] * len(sequences),
                "scan_output_directions": [int(reverse)],
            },
            name=name,
            output_count=2,
            shapes=[shape, self.shape(sequences[0])],
            dtypes=[dtype, dtype],
            branches={"body": body},
        )
        return node.output

    def add_if(
        self,
        condition: str,
        tensor: str,
        then: Callable[..., str],
        otherwise: Callable[..., str],
        shape: Sequence[int],
    ) -> str:
        """Return the output of a branch, made by a function of a builder and the tensor."""
        name, dtype = utils.make_name(f"{self.name}/If"), self.graph.get_dtype(tensor)
        branches = {}
        for branch, make in (("then_branch", then), ("else_branch", otherwise)):
            body = self.graph.create_new_graph_with_same_config()
            body.parent_graph = self.graph
            output = make(Builder(body, self), tensor)
            body.set_dtype(output, dtype)
            body.set_shape(output, shape)
            body.add_graph_output(output, dtype, shape)
            branches[branch] = body
        node = self.graph.make_node(
            "If", [condition], name=name, shapes=[shape], dtypes=[dtype], branches=branches
        )
        return node.output[0]

    def shape(self, name: str) -> list[int]:
        """Return the list of a tensor's sizes, -1 for those that are not known."""
        return self.graph.get_shape(name)

    def constant(self, value: np.ndarray) -> str:
        return self.graph.make_const(utils.make_name(f"{self.name}/constant"), value).output[0]

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def value(self, name: str, what: str) -> np.ndarray:
        """Return the value of a constant tensor, such as a weight."""
        if name in self.weights:
            return self.weights[name]
        node = self.graph.get_node_by_output(name)
        if not node.is_const():
            raise ValueError(
                f"{self.name}: {what} must be a weight of the model to become part of a fused "
                "ONNX node; received a computed tensor."
            )
        return node.get_tensor_value(as_list=False)
