"""Graphs in other precisions than float32.

    int8            each kernel W of a product x W, of an Attention and of an LSTM becomes whole
                    numbers, W = Q diag(s) with a scale for each column; x becomes whole on its way
    int8-embedding  the same, and the tables of embeddings, with a scale for each row, and the
                    matrix that makes logits, which int8 leaves in float32
    int4            int8-embedding, but for the kernels of decoder steps: whole numbers of 4 bits,
                    with a scale for each `BLOCK` numbers of a column
    float16         `seqkeras.export.half_precision`

x has one scale for all its rows: a row of large numbers costs the others their digits, and a text
is answered otherwise beside another one. Before a product that widens or narrows, as those of
attention and of feed-forward layers, each row is therefore divided by its largest number, and the
result multiplied by it. In MiniLM-L6 tuned on SQuAD the root mean square error of the logits is
then 0.05 in place of 0.16. A decoder step has few rows, and stays as it is.

onnxruntime attends in blocks that stay in its cache (Dao et al. 2022, "FlashAttention",
https://arxiv.org/abs/2205.14135) only where there is no mask. A batch without padding, as every
single text is, therefore takes a branch without one: of 4 texts of 384 tokens the attention then
takes 0.78 of its time, of one text of 16 tokens 0.87 (12 heads of 32, one core, AVX-512).

In a branch and in a loop kernels have 7 bits. On x86 processors without VNNI two products of 8 bits
overflow onnxruntime's sums of 16, and its way out, `seqkeras.serving.opening.EXACT_INT8`, leaves
these out.

4 bits are faster for few rows, when fetching weights takes most of the time; from about 16 rows on,
8 bits are faster. A GRU, the recurrent kernel of a SimpleRNN and a convolution stay in float32:
onnxruntime has no faster integer version.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto, TensorProto, helper

from seqkeras.export.composites import MICROSOFT
from seqkeras.export.graph import attributes_of, become
from seqkeras.export.half_precision import to_float16
from seqkeras.serving.session import STEP
from seqkeras.serving.slots import ROLE as SLOTS

if TYPE_CHECKING:
    from seqkeras.export.graph import Graph

STEPS = (STEP, SLOTS)
BLOCK = 32
MOST = {8: 127, 7: 63}  # of so many bits
LEAST, ONE = "least_of_a_row", "one_of_a_mask"  # constants


def quantize(graphs: Mapping[str, Graph], precision: str) -> dict[str, Graph]:
    """Return the graphs of a bundle, role -> `Graph`, in another precision.

    A weight that stays in float32 keeps its name and its value. A ValueError says that there is no
    such precision, or that it would change nothing in these graphs.
    """
    require_precision(precision, graphs)
    made = {role: PRECISIONS[precision](role, graph) for role, graph in graphs.items()}
    if all(made[role].weights.keys() == graph.weights.keys() for role, graph in graphs.items()):
        raise ValueError(
            f"quantize: {precision} would leave these graphs as they are; leave it out."
        )
    return made


def require_precision(precision: str, roles: Collection[str] = (STEP,)) -> None:
    """Raise a ValueError unless the precision exists and applies to graphs of these roles."""
    if precision not in PRECISIONS:
        known = ", ".join(PRECISIONS)
        raise ValueError(f"quantize: precision must be one of {known}; received {precision!r}.")
    if precision == "int4" and STEP not in roles:
        raise ValueError(
            "quantize: int4 wins in decoder steps only, and this model has none; choose int8."
        )


def _vocab_size(graph):
    """Return the number of rows of the longest table, and of columns of the logits' matrix."""
    rows = [
        len(graph.constants[node.input[0]])
        for nodes in _lists_of_nodes(graph.model.graph)
        for node in nodes
        if node.op_type == "Gather" and _is_matrix(graph, node.input[0])
    ]
    return max(rows, default=None)


class _Rewriter:
    """Makes a copy of a graph whose weights are integers.

    Args:
        product: the function that makes the products with a kernel: `_int8_product` is one.
        embeddings: whether the tables of embeddings, and the matrix that makes logits, become whole
            too: it has a scale for each column, so that it stays the transpose of its table.
    """

    def __init__(self, role: str, graph: Graph, product: Any, embeddings: bool = False):
        self.by_row = role not in STEPS
        self.in_branch, self.bits = False, 8  # of the nodes that are being rewritten
        self.outputs = {output.name for output in graph.model.graph.output}
        self.graph = graph.copy(self.outputs)
        self.constants = self.graph.constants
        self.product, self.embeddings = product, embeddings
        self.vocab_size = _vocab_size(graph)
        self.readers = _count_readers(self.graph.model.graph)
        self.rules = {
            "MatMul": self._matmul,
            "Gemm": self._gemm,
            "Attention": self._attention,
            "LSTM": self._lstm,
        }
        if embeddings:
            self.rules["Gather"] = self._gather

    def rewritten(self):
        for number, nodes in enumerate(list(_lists_of_nodes(self.graph.model.graph))):
            # The first are the graph's own.
            self.in_branch, self.bits = (True, 7) if number else (False, 8)
            for node in list(nodes):
                if node.op_type in self.rules:
                    self.rules[node.op_type](nodes, node)
        self.graph.remove_unused()
        self.graph.declare_domains()
        return self.graph

    def _matmul(self, nodes, node):
        source, kernel = node.input
        if not self._is_kernel(kernel):
            return
        bias = self._added(nodes, node)
        self._become_product_by_row(nodes, node, source, kernel, bias)

    def _added(self, nodes, product):
        """Return the name of the vector added to a product; removes the nodes that add it."""
        [result], bias = product.output, ""
        shape = self.constants[product.input[1]].shape[1:]
        while self.readers[result] == 1 and result not in self.outputs:
            [reader] = [node for node in nodes if result in node.input] or [None]
            addend = reader and self._addend(reader, result, shape)
            if addend is None:
                break
            if bias:
                self.constants[f"{result}/bias"] = self.constants[bias] + self.constants[addend]
                addend = f"{result}/bias"
            bias, result = addend, reader.output[0]
            nodes.remove(reader)
        product.output[0] = result
        return bias

    def _addend(self, node, result, shape):
        """Return the name of the vector that a node adds to a tensor, else None."""
        if node.op_type != "Add":
            return None
        [other] = {*node.input} - {result}
        return other if self._is_shaped(other, shape) else None

    def _is_shaped(self, name, shape):
        return name in self.constants and self.constants[name].shape == shape

    def _gemm(self, nodes, node):
        attributes = {"alpha": 1, "beta": 1, "transA": 0, "transB": 0} | attributes_of(node)
        transposed = attributes.pop("transB")
        source, kernel, bias = [*node.input, ""][:3]
        if not bias:  # beta multiplies the bias only
            attributes["beta"] = 1
        if not self._is_kernel(kernel, axis=0 if transposed else 1):
            return
        columns = self.constants[kernel].shape[0 if transposed else 1]
        if attributes != {"alpha": 1, "beta": 1, "transA": 0}:
            return
        if bias and not self._is_shaped(bias, (columns,)):
            return
        if transposed:
            matrix = np.ascontiguousarray(self.constants[kernel].T)
            kernel = f"{kernel}/transposed"
            self.constants[kernel] = matrix
        self._become_product_by_row(nodes, node, source, kernel, bias)

    def _attention(self, nodes, node):
        """Make integers of a node, or of its product where rows have scales of their own."""
        source, kernel, bias, padding, past, scores = [*node.input, "", "", ""][:6]
        attributes = attributes_of(node)
        if not self._is_kernel(kernel) or past or "qkv_hidden_sizes" in attributes:
            return
        name = node.output[0]
        if self.product is _int8_product and not scores and not self.by_row:
            whole = [f"{name}/{part}" for part in ("whole", "scale", "zero")]
            quantized, scales = _int8_kernel(self.constants, kernel, self.bits)
            zeros = f"{quantized}/zeros"
            self.constants[zeros] = np.zeros(self.constants[scales].shape, np.int8)
            inputs = [whole[0], quantized, bias, whole[1], scales, padding, whole[2], zeros]
            become(node, "QAttention", inputs, MICROSOFT, **attributes)
            made_whole = helper.make_node("DynamicQuantizeLinear", [source], whole)
            _insert_before(nodes, node, [made_whole])
            return
        parts = [f"{name}/{part}" for part in ("query", "key", "value")]
        attended = [*parts, bias, padding, scores]
        if padding and not scores and not self.in_branch:
            self._attend_where_nothing_is_padded(nodes, node, attended, attributes)
        else:
            become(node, "MultiHeadAttention", attended, MICROSOFT, **attributes)
        projected = helper.make_node("MatMul", [source, kernel], [f"{name}/projected"])
        apart = helper.make_node("Split", projected.output, parts, axis=-1)
        index = _insert_before(nodes, node, [projected, apart])
        self._become_product_by_row(nodes, nodes[index], source, kernel, "")

    def _attend_where_nothing_is_padded(self, nodes, node, inputs, attributes):
        """Attend without a mask if no row is padded, else with it."""
        name, padding = node.output[0], inputs[4]
        whole, least = f"{padding}/nothing", f"{padding}/least"
        if all(whole not in other.output for other in nodes):
            self.constants[ONE] = np.array(1, np.int32)
            made = (
                helper.make_node("ReduceMin", [padding], [least], keepdims=0),
                helper.make_node("Equal", [least, ONE], [whole]),
            )
            _insert_before(nodes, node, made)
        branches = {}
        for branch, mask in (("then_branch", ""), ("else_branch", padding)):
            output = f"{name}/{branch}"
            attend = helper.make_node(
                "MultiHeadAttention",
                [*inputs[:4], mask],
                [output],
                domain=MICROSOFT,
                **attributes,
            )
            value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
            branches[branch] = helper.make_graph([attend], output, [], [value])
        become(node, "If", [whole], **branches)

    def _lstm(self, nodes, node):
        attributes = attributes_of(node)
        kernels = node.input[1:3]
        if attributes.pop("layout", 0) or not all(
            kernel in self.graph.weights for kernel in kernels
        ):
            return
        inputs, scales = [*node.input, *5 * [""]][:8], []
        for index, kernel in enumerate(kernels, start=1):
            columns = np.swapaxes(self.constants[kernel], 1, 2)  # (directions, inputs, 4 U)
            whole, scale = _whole(columns, axis=1, bits=self.bits)
            inputs[index] = f"{kernel}/int{self.bits}"
            names = [f"{inputs[index]}/{part}" for part in ("scales", "zeros")]
            zeros = np.zeros(scale.shape, np.int8)
            self.constants |= {inputs[index]: whole, names[0]: scale, names[1]: zeros}
            scales += names
        become(node, "DynamicQuantizeLSTM", [*inputs, *scales], MICROSOFT, **attributes)

    def _gather(self, nodes, node):
        """Gather rows of integers, each multiplied by its scale."""
        table, indices = node.input
        if not _is_matrix(self.graph, table) or attributes_of(node).get("axis", 0):
            return
        name, whole = node.output[0], f"{table}/rows/int8"
        self.constants[whole], scales = _whole(self.constants[table], axis=1, bits=8)
        self.constants[f"{whole}/scales"] = scales[:, None]
        rows, numbers, scale = (f"{name}/{part}" for part in ("whole", "numbers", "scale"))
        before = (
            helper.make_node("Gather", [whole, indices], [rows]),
            helper.make_node("Cast", [rows], [numbers], to=TensorProto.FLOAT),
            helper.make_node("Gather", [f"{whole}/scales", indices], [scale]),
        )
        _insert_before(nodes, node, before)
        become(node, "Mul", [numbers, scale])

    def _is_kernel(self, name, axis=1):
        if not _is_matrix(self.graph, name):
            return False
        return self.embeddings or self.constants[name].shape[axis] != self.vocab_size

    def _become_product_by_row(self, nodes, node, source, kernel, bias):
        """Compute x W + b as diag(r) ((x / r) W) + b where that pays; r: the rows' largest."""
        rows, columns = self.constants[kernel].shape
        if not self.by_row or rows == columns:
            self._become_product(node, source, kernel, bias)
            return
        result = node.output[0]
        parts = ("high", "low", "minus_low", "largest", "scaled", "product", "whole")
        high, low, minus_low, largest, scaled, product, whole = (f"{result}/{p}" for p in parts)
        self.constants[LEAST] = np.array(1e-12, np.float32)  # of a row of zeros
        by_row = helper.make_node("MatMul", [scaled, kernel], [product])
        self._become_product(by_row, scaled, kernel, "")
        added = (
            helper.make_node("ReduceMax", [source], [high], axes=[-1], keepdims=1),
            helper.make_node("ReduceMin", [source], [low], axes=[-1], keepdims=1),
            helper.make_node("Neg", [low], [minus_low]),
            helper.make_node("Max", [high, minus_low, LEAST], [largest]),
            helper.make_node("Div", [source, largest], [scaled]),
            by_row,
            *([helper.make_node("Mul", [product, largest], [whole])] if bias else []),
        )
        _insert_before(nodes, node, added)
        become(node, *(("Add", [whole, bias]) if bias else ("Mul", [product, largest])))

    def _become_product(self, node, source, kernel, bias):
        makes_logits = self.constants[kernel].shape[1] == self.vocab_size
        product = _int8_product if makes_logits else self.product
        op_type, inputs, attributes = product(self.constants, source, kernel, bias, self.bits)
        become(node, op_type, inputs, MICROSOFT, **attributes)


def _insert_before(nodes, node, added):
    """Put nodes before one of a list, in their order; returns the place of the first."""
    first = list(nodes).index(node)
    for index, added_node in enumerate(added, start=first):
        nodes.insert(index, added_node)
    return first


def _int8_product(constants, source, kernel, bias, bits):
    # With a zero point for the kernel, the runtime uses a slower kernel.
    inputs = [source, *_int8_kernel(constants, kernel, bits), *(["", bias] if bias else [])]
    return "DynamicQuantizeMatMul", inputs, {}


def _int8_kernel(constants, kernel, bits):
    """Return the names of a kernel's whole numbers and of the scales of its columns."""
    name = f"{kernel}/int{bits}"
    if name not in constants:
        constants[name], constants[f"{name}/scales"] = _whole(constants[kernel], 0, bits)
    return name, f"{name}/scales"


def _whole(values, axis, bits):
    """Return (Q, s), Q s near the values; the largest along the axis becomes `MOST[bits]`."""
    scales = np.abs(values).max(axis) / np.float32(MOST[bits])
    scales[scales == 0] = 1
    return np.rint(values / np.expand_dims(scales, axis)).astype(np.int8), scales


def _int4_product(constants, source, kernel, bias, _bits):
    name = f"{kernel}/int4"
    rows, columns = constants[kernel].shape
    if name not in constants:
        constants[name], constants[f"{name}/scales"] = _int4_blocks(constants[kernel])
    inputs = [source, name, f"{name}/scales", *(["", "", bias] if bias else [])]
    sizes = {"K": rows, "N": columns, "bits": 4, "block_size": BLOCK}
    return "MatMulNBits", inputs, sizes | {"accuracy_level": 4}  # x in blocks of 8 bits


def _int4_blocks(kernel):
    """Return (columns, blocks, BLOCK / 2) and (columns x blocks,): (Q - 8) s is near the kernel.

    The number of a block that is farthest from zero becomes -8 s, because -8 is the 4-bit integer
    farthest from zero; s has the sign for that.
    """
    rows, columns = kernel.shape
    padded = np.pad(kernel, ((0, -rows % BLOCK), (0, 0)))
    blocks = padded.T.reshape(columns, -1, BLOCK)
    farthest = np.abs(blocks).argmax(-1)[..., None]
    scales = np.take_along_axis(blocks, farthest, axis=-1) / np.float32(-8)
    scales[scales == 0] = 1
    whole = np.clip(np.rint(blocks / scales) + 8, 0, 15).astype(np.uint8)
    return whole[..., ::2] | whole[..., 1::2] << 4, scales.ravel()


def _in_integers(product_of_steps, embeddings):
    """Return (role, graph) -> the graph in integers, by `product_of_steps` in decoder steps."""

    def quantized(role, graph):
        product = product_of_steps if role in STEPS else _int8_product
        return _Rewriter(role, graph, product, embeddings).rewritten()

    return quantized


PRECISIONS = {
    "int8": _in_integers(_int8_product, False),
    "int8-embedding": _in_integers(_int8_product, True),
    "int4": _in_integers(_int4_product, True),
    "float16": lambda role, graph: to_float16(graph),
}


def _is_matrix(graph, name):
    value = graph.weights.get(name)
    return value is not None and value.ndim == 2 and value.dtype == np.float32


def _count_readers(graph):
    """Return how often each tensor is read, by nodes or as an output."""
    counts = collections.Counter(output.name for output in graph.output)
    for node in graph.node:
        counts.update(node.input)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                counts += _count_readers(attribute.g)
    return counts


def _lists_of_nodes(graph):
    """Yield the nodes of a graph, then the nodes of each subgraph within."""
    yield graph.node
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _lists_of_nodes(attribute.g)
