"""Rewrites of what tf2onnx makes of common Keras code into the one ONNX operator that does it.

    x[:, None]         Unsqueeze, then a Slice that keeps everything    ->  Unsqueeze
    SAME padding       Conv of stride 1, padded automatically           ->  Conv, padded by numbers
    GELU               x / 2 times 1 - erf(-x / sqrt(2))                ->  Gelu
    zero points of 0   of a MatMulInteger                               ->  none, which means 0
    a shape and back   Reshapes whose result has the first one's shape  ->  nothing
    two Reshapes       the second of which asks nothing of the first    ->  the second
    a shape computed   Reshape to sizes that are numbers, but for one   ->  -1 for that one
    and computed anew  Reshape to the sizes that another one computed   ->  those
    x W, x of rank 3   Reshape to rows, MatMul or Gemm, Reshape back    ->  MatMul, and an Add
    logits not allowed Where(allowed, x W + b, a large negative one)    ->  a bias as large
    heads of keys      Reshape, Transpose, into MultiHeadAttention      ->  what was reshaped
    length of heads    Slice of a Shape of projected heads              ->  of what was projected
    self-attention     three products of one tensor into the same       ->  Attention, or with a
                                                                            past one product
    padded heads       of keys that stay apart, in MultiHeadAttention   ->  a bias on the scores

A rule matches exactly the nodes that it replaces; other nodes do not change. Sizes are compared as
symbols ("batch", "length"): equal symbols are equal sizes. Rules for recurrent nodes are in
`seqkeras.export.recurrent_rewrites`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

from seqkeras.export import recurrent_rewrites
from seqkeras.export.composites import MICROSOFT
from seqkeras.export.graph import attributes_of, become
from seqkeras.masks import MASKED_SCORE
from seqkeras.values import BANNED_LOGIT

if TYPE_CHECKING:
    from seqkeras.export.graph import Graph

WHOLE = 10**9  # tf2onnx's end of a slice that has no end


def simplify(graph: Graph, portable: bool = False) -> None:
    """Apply the rewrites to an `export.graph.Graph`, in place; portable: to standard operators."""
    graph.infer()
    for op_type, rewrite in REWRITES:
        if portable and rewrite in FUSED:
            continue
        for node in list(graph.nodes):
            if node.op_type == op_type:
                rewrite(graph, node)
    graph.pass_identities()
    graph.remove_unused()


def _pass_whole_slice(graph, node):
    starts, ends, _, steps = [graph.constant(name) for name in [*node.input[1:], "", ""][:4]]
    if starts is None or ends is None or (steps is None and len(node.input) > 4):
        return
    if not starts.any() and (ends >= WHOLE).all() and (steps is None or (steps == 1).all()):
        become(node, "Identity", node.input[:1])


def _pad_explicitly(graph, node):
    """Pad by numbers: onnxruntime knows no automatic padding of a dilated convolution."""
    options = attributes_of(node)
    if options.pop("auto_pad", b"") == b"SAME_UPPER" and {*options.get("strides", [1])} == {1}:
        reach = [(k - 1) * d for k, d in zip(options["kernel_shape"], options["dilations"])]
        pads = [size // 2 for size in reach] + [size - size // 2 for size in reach]
        become(node, "Conv", node.input, pads=pads, **options)


def _activate_by_gelu(graph, node):
    half, complement = (graph.maker(name, op) for name, op in zip(node.input, ("Mul", "Sub")))
    erf = complement and graph.maker(complement.input[1], "Erf")
    scaled = erf and graph.maker(erf.input[0], "Mul")
    negative = scaled and graph.maker(scaled.input[0], "Neg")
    source = half and _times(graph, half, 0.5)
    if (
        negative
        and negative.input[0] == source
        and graph.is_close(scaled.input[1], 0.5**0.5)
        and graph.is_constant(complement.input[0], 1)
    ):
        become(node, "Gelu", [source], MICROSOFT)


def _times(graph, product, factor):
    """Return the tensor that a Mul multiplies by the constant `factor`, else None."""
    for one, other in (product.input, product.input[::-1]):
        if graph.is_close(other, factor):
            return one
    return None


def _pass_zero_points(graph, node):
    """Leave zeros out: onnxruntime can not make weights unsigned whose zero points are shared."""
    while len(node.input) > 2 and not np.any(graph.constants.get(node.input[-1], 1)):
        del node.input[-1]


def _pass_reshape(graph, node):
    source = graph.reshaped_from(node.input[0], graph.shape(node.output[0]))
    if source is not None:
        become(node, "Identity", [source])


def _share_sizes(graph, node):
    shape = graph.shape(node.output[0])
    if not shape or 0 in shape or graph.constant(node.input[1]) is not None:
        return
    sizes = [size if isinstance(size, int) else -1 for size in shape]
    if sizes.count(-1) == 1:
        node.input[1] = f"{node.output[0]}/sizes"
        graph.constants[node.input[1]] = np.array(sizes)
        return
    computed = (
        node.input[1]
        for node in graph.nodes
        if node.op_type == "Reshape"
        and graph.shape(node.output[0]) == shape
        and graph.constant(node.input[1]) is None
    )
    node.input[1] = next(computed)


def _join_reshapes(graph, node):
    shape = graph.constant(node.input[1])
    if shape is not None and shape.all():  # a 0 means a size of the input
        node.input[0] = graph.unmoved(node.input[0], "Reshape")[-1]


def _multiply_any_rank(graph, node):
    product = graph.maker(node.input[0], "MatMul") or _plain_gemm(graph, node.input[0])
    shape = product and graph.shape(node.output[0])
    kernel = graph.constants.get(product.input[1]) if shape else None
    if kernel is None or kernel.ndim != 2:
        return
    inputs, outputs = kernel.shape
    # Rows of the kernel's input size are the source's own rows.
    source = graph.reshaped_from(product.input[0], (*shape[:-1], inputs))
    if source is None or shape[-1] != outputs:
        return
    if product.op_type == "MatMul":
        become(node, "MatMul", [source, product.input[1]])
        return
    name = f"{node.output[0]}/product"
    position = list(graph.nodes).index(node)
    graph.insert(position, helper.make_node("MatMul", [source, product.input[1]], [name], name))
    become(node, "Add", [name, product.input[2]])


def _ban_by_bias(graph, node):
    """Ban tokens by a bias: a Where would read and write all logits once more."""
    allowed, banned = graph.constant(node.input[0]), graph.constant(node.input[2])
    if allowed is None or allowed.ndim != 1:
        return
    if banned is None or banned.size > 1 or banned > BANNED_LOGIT:
        return
    add = graph.maker(node.input[1], "Add")
    product = graph.maker(add.input[0] if add else node.input[1], "MatMul")
    bias = graph.constant(add.input[1]) if add else np.zeros(allowed.shape, banned.dtype)
    if product is None or bias is None or bias.shape != allowed.shape:
        return
    name = f"{node.output[0]}/bias"
    graph.constants[name] = np.where(allowed, bias, banned.reshape(())).astype(bias.dtype)
    become(node, "Add", [product.output[0], name])


def _plain_gemm(graph, name):
    """Return the Gemm that computes a tensor as x W + b, else None."""
    gemm = graph.maker(name, "Gemm")
    options = attributes_of(gemm) if gemm else {}
    plain = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
    fits = all(plain.get(name, value) == value for name, value in options.items())
    return gemm if gemm and fits and len(gemm.input) == 3 else None


def _attend_by_rows(graph, node):
    """Use keys and values (B, S, N H) from before the heads are separated."""
    heads = attributes_of(node)["num_heads"]
    rows = [_without_heads(graph, name, heads) for name in node.input[1:3]]
    if all(rows):
        node.input[1], node.input[2] = rows


def _without_heads(graph, name, heads):
    transpose = graph.maker(graph.unmoved(name)[-1], "Transpose")
    if not transpose or attributes_of(transpose)["perm"] != [0, 2, 1, 3]:
        return None
    apart = graph.shape(transpose.input[0])
    if not apart or apart[2] != heads or not isinstance(apart[3], int):
        return None
    return graph.reshaped_from(transpose.input[0], (*apart[:2], heads * apart[3]))


def _measure_source(graph, node):
    """Take a length from the source of a projection, which saves a second product."""
    shape = graph.maker(node.input[0], "Shape")
    heads = shape and graph.maker(graph.unmoved(shape.input[0])[-1], "Transpose")
    if not heads or not graph.is_constant(node.input[1], [2]):
        return
    apart = graph.maker(graph.unmoved(heads.input[0])[-1], "Reshape")
    projection = apart and _projection(graph, apart.input[0])
    source = projection and graph.shape(projection[0])
    sizes = graph.shape(heads.output[0])
    if not source or not sizes or len(source) != 3 or source[1] != sizes[2]:
        return
    if attributes_of(heads)["perm"] != [0, 2, 1, 3] or not graph.is_constant(node.input[2], [3]):
        return
    length = f"{node.output[0]}/source"
    options = {"start": 1, "end": 2}
    graph.insert(
        list(graph.nodes).index(node),
        helper.make_node("Shape", projection[:1], [length], length, **options),
    )
    become(node, "Identity", [length])


def _attend_to_itself(graph, node):
    """Project query, key and value from one tensor, by one product."""
    parts = [_projection(graph, name) for name in node.input[:3]]
    if not all(parts) or len({source for source, _, _ in parts}) > 1:
        return
    name = node.output[0]
    graph.constants[f"{name}/kernel"] = np.concatenate([part[1] for part in parts], axis=1)
    graph.constants[f"{name}/bias"] = np.concatenate([part[2] for part in parts])
    weights = parts[0][0], f"{name}/kernel", f"{name}/bias"
    if len(node.input) <= 6:
        padding, bias = [*node.input[4:], "", ""][:2]
        inputs = [*weights, padding, "", bias]
        become(node, "Attention", inputs, MICROSOFT, **attributes_of(node))
    else:  # Attention needs past keys and values in one tensor
        node.input[:3] = _projected_together(graph, node, *weights)


def _pad_by_bias(graph, node):
    """Mask padded keys (B, N, S, H) by a bias: onnxruntime before 1.21 attends to padding.

    Nodes with the same padding and number of queries share the bias, (B, N, T, S).
    """
    padding = node.input[4] if len(node.input) > 4 else ""
    if not padding:
        return
    query, keys = (graph.shape(name) for name in node.input[:2])
    if keys and len(keys) == 3:
        return
    heads = attributes_of(node)["num_heads"]
    bias = f"{padding}/{heads}/{query[1] if query else node.name}/bias"
    if bias not in graph.makers:
        _make_bias(graph, node, bias, heads)
    del node.input[4:]
    node.input.extend(["", bias])


def _make_bias(graph, node, bias, heads):
    """Add the nodes of a bias before the node that takes it."""
    query, padding = node.input[0], node.input[4]
    constants = {
        "zero": np.float32(0),
        "masked": np.float32(MASKED_SCORE),
        "apart": np.array([0, 1, 1, -1]),
        "one": np.array([1]),
        "heads": np.array([1, heads]),
    }
    graph.constants |= {f"{bias}/{name}": value for name, value in constants.items()}
    made = [
        ("Cast", [padding], "real", {"to": TensorProto.BOOL}),
        ("Where", [f"{bias}/real", f"{bias}/zero", f"{bias}/masked"], "added", {}),
        ("Reshape", [f"{bias}/added", f"{bias}/apart"], "row", {}),
        ("Shape", [query], "length", {"start": 1, "end": 2}),
        ("Concat", [f"{bias}/heads", f"{bias}/length", f"{bias}/one"], "sizes", {"axis": 0}),
    ]
    nodes = [
        helper.make_node(op_type, inputs, [f"{bias}/{output}"], f"{bias}/{op_type}", **attributes)
        for op_type, inputs, output, attributes in made
    ]
    expand = [f"{bias}/row", f"{bias}/sizes"]
    nodes.append(helper.make_node("Expand", expand, [bias], f"{bias}/Expand"))
    graph.insert(list(graph.nodes).index(node), *nodes)
    graph.makers[bias] = nodes[-1]


def _projected_together(graph, node, source, kernel, bias):
    """Insert one product before a node, split into three tensors of equal width."""
    name, position = node.output[0], list(graph.nodes).index(node)
    products = [f"{name}/{part}" for part in ("product", "projected")]
    parts = [f"{name}/{part}" for part in ("query", "key", "value")]
    graph.insert(
        position,
        helper.make_node("MatMul", [source, kernel], products[:1], f"{name}/MatMul"),
        helper.make_node("Add", [products[0], bias], products[1:], f"{name}/Add"),
        helper.make_node("Split", products[1:], parts, f"{name}/Split", axis=-1),
    )
    return parts


def _projection(graph, name):
    """Return (x, W, b) of a tensor x W + b with constant W and b, else None."""
    name = graph.unmoved(name)[-1]
    add = graph.maker(name, "Add")
    product = graph.maker(graph.unmoved(add.input[0] if add else name)[-1], "MatMul")
    kernel = product and graph.constant(product.input[1])
    if kernel is None or kernel is False:
        return None
    bias = graph.constant(add.input[1]) if add else np.zeros(kernel.shape[1], kernel.dtype)
    if bias is None or bias.shape != kernel.shape[1:]:
        return None
    return graph.unmoved(product.input[0])[-1], kernel, bias


REWRITES = (  # (operator of a node, what rewrites the node), in this order
    ("Slice", _pass_whole_slice),
    ("Conv", _pad_explicitly),
    ("Mul", _activate_by_gelu),
    ("MatMulInteger", _pass_zero_points),
    ("Reshape", _pass_reshape),
    ("Reshape", _multiply_any_rank),
    ("Where", _ban_by_bias),
    ("MultiHeadAttention", _attend_by_rows),
    ("Slice", _measure_source),
    ("MultiHeadAttention", _attend_to_itself),
    ("MultiHeadAttention", _pad_by_bias),
    ("If", recurrent_rewrites.assume_right_padded),
    ("If", recurrent_rewrites.stay_compact),
    ("Where", recurrent_rewrites.end_at_zeros),
    ("GRU", recurrent_rewrites.begin_at_zeros),
    ("LSTM", recurrent_rewrites.begin_at_zeros),
    ("Scan", recurrent_rewrites.begin_loop_at_zeros),
    ("Reshape", _share_sizes),
    ("Reshape", _join_reshapes),  # last, because other rules match nodes between two Reshapes
)
FUSED = (_activate_by_gelu, recurrent_rewrites.end_at_zeros)  # rewrites for ONNX Runtime alone
