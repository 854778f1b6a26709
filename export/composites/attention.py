"""Attention, layer normalisation and GELU as one ONNX operator each.

ONNX Runtime's MultiHeadAttention takes queries of shape (B, T, N H), and keys and values as the
composite has them. A masked position gets so low a score that its weight is 0. A row in which every
position is masked would attend to all of them, so its context is multiplied by zero. A bias is
added to the scores there. Vectors of distances, which are added to values too, need the weights,
which standard operators give.
"""

import numpy as np
from onnx import TensorProto
from tf2onnx import utils

from seqkeras.export.composites.builder import MICROSOFT
from seqkeras.masks import MASKED_SCORE


def _lower_attention(builder, inputs, outputs, causal, scale):
    query, mask = inputs["query"], inputs.get("mask")
    _, heads, _, head_dim = builder.shape(query)
    if causal:
        mask = _with_causality(builder, mask, query, inputs["key"])
    padding, bias = "", inputs.get("bias", "")
    padded = not bias and mask is not None and not causal and builder.shape(mask)[1:3] == [1, 1]
    if padded and builder.shape(mask)[0] != 1:
        rows = builder.add("Reshape", [mask, builder.integers(0, -1)])  # (B, S)
        padding = builder.add("Cast", [rows], to=TensorProto.INT32)
    elif mask is not None:  # beside a bias the runtime forgets the padding
        bias = _bias(builder, mask, heads, _length(builder, query), builder.integers(1), bias)
    context = builder.add(
        "MultiHeadAttention",
        [
            _as_rows(builder, query, heads * head_dim),
            inputs["key"],
            inputs["value"],
            "",
            padding,
            bias,
        ],
        domain=MICROSOFT,
        num_heads=heads,
        mask_filter_value=MASKED_SCORE,
        scale=head_dim**-0.5 if scale is None else scale,
    )
    if mask is not None and builder.shape(mask)[1] == 1:
        context = builder.add("Mul", [context, _may_attend(builder, mask, axis=1)])  # (B, T, N H)
    rows = builder.add("Reshape", [context, builder.integers(0, 0, heads, head_dim)])
    if mask is None or builder.shape(mask)[1] == 1:
        builder.add("Transpose", [rows], outputs=[outputs[0]], perm=[0, 2, 1, 3])
    else:
        contexts = builder.add("Transpose", [rows], perm=[0, 2, 1, 3])  # (B, N, T, H)
        builder.add("Mul", [contexts, _may_attend(builder, mask)], outputs=[outputs[0]])


def _lower_cached_attention(builder, inputs, outputs):
    """Lower cached attention; all rows have one length, so the runtime appends to the cache."""
    if "relative_values" in inputs:
        return _lower_cached_attention_portably(builder, inputs, outputs)
    _, heads, _, head_dim = builder.shape(inputs["query"])
    query, key, value = (
        _as_rows(builder, inputs[name], heads * head_dim) for name in ("query", "key", "value")
    )
    names = [utils.make_name(f"{builder.name}/{name}") for name in ("context", "key", "value")]
    names[1:] = [outputs.get(index, name) for index, name in enumerate(names) if index]
    prefix = inputs.get("prefix_lengths")
    table = inputs.get("distance_bias")
    bias = "" if prefix is None and table is None else _cache_bias(builder, inputs, prefix)
    caches = [inputs["cached_key"], inputs["cached_value"]]
    builder.add(
        "MultiHeadAttention",
        [query, key, value, "", "", bias, *caches],
        outputs=names,
        domain=MICROSOFT,
        num_heads=heads,
        unidirectional=int(prefix is None),
    )
    rows = builder.add("Reshape", [names[0], builder.integers(0, 0, heads, head_dim)])
    builder.add("Transpose", [rows], outputs=[outputs[0]], perm=[0, 2, 1, 3])


def _cache_bias(builder, inputs, prefix):
    """Return (B or 1, N, T, P + T): with a prefix a score that makes the weight 0, for later keys
    outside the prefix; and the biases of distances."""
    lengths = [_length(builder, inputs[name]) for name in ("cached_key", "key")]
    total = builder.add("Add", lengths)
    places = _places(builder, lengths[1], total)
    bias = ""
    if "distance_bias" in inputs:
        bias = _bias_of_distances(builder, inputs["distance_bias"], *places)
    if prefix is None:
        return bias
    seen = _causal_behind(builder, prefix, *places)
    return _bias(builder, seen, builder.shape(inputs["key"])[1], lengths[1], total, bias)


def _bias(builder, allowed, heads, target_length, source_length, bias=""):
    """Return scores (B or 1, N, T, S) that make the weight 0 where a query may not attend; there
    may be a bias elsewhere."""
    zero, masked = (builder.constant(np.float32(number)) for number in (0, MASKED_SCORE))
    bias = builder.add("Where", [allowed, bias or zero, masked])
    # onnxruntime before 1.21 does not repeat a bias for every head.
    shape = [builder.integers(1, heads), target_length, source_length]
    return builder.add("Expand", [bias, builder.add("Concat", shape, axis=0)])


def _rows_of_distances(builder, table, queries, keys):
    """Return (T, S, ·), the row of a table (2M + 1, ·) for the distance of each key and query; see
    `seqkeras.composites.distances`."""
    furthest = builder.shape(table)[0] // 2
    distances = builder.add("Sub", [keys, queries])  # (T, S)
    bounds = [builder.constant(np.int64(bound)) for bound in (-furthest, furthest)]
    distances = builder.add("Clip", [distances, *bounds])
    rows = builder.add("Add", [distances, builder.constant(np.int64(furthest))])
    return builder.add("Gather", [table, rows], axis=0)


def _bias_of_distances(builder, table, queries, keys):
    """Return (1, N, T, S), b of a table (2M + 1, N)."""
    rows = _rows_of_distances(builder, table, queries, keys)
    bias = builder.add("Transpose", [rows], perm=[2, 0, 1])
    return builder.add("Unsqueeze", [bias, builder.integers(0)])


def _by_query(builder, tensor, relative):
    """Return (B, N, T, ·), the product of (B, N, T, ·) with a matrix (T, ·, ·) of each query."""
    products = builder.add("MatMul", [builder.transpose(tensor, [0, 2, 1, 3]), relative])
    return builder.transpose(products, [0, 2, 1, 3])


def _lower_cached_attention_portably(builder, inputs, outputs):
    """Lower cached attention to standard operators."""
    query = inputs["query"]
    keys, values = (
        builder.add("Concat", [inputs[f"cached_{name}"], inputs[name]], axis=2)
        for name in ("key", "value")
    )
    scale = builder.constant(np.float32(builder.shape(query)[-1] ** -0.5))
    transposed = builder.add("Transpose", [keys], perm=[0, 1, 3, 2])
    query = builder.add("Mul", [query, scale])
    scores = builder.add("MatMul", [query, transposed])
    places = _places(builder, _length(builder, inputs["query"]), _length(builder, keys))
    if "distance_bias" in inputs:
        bias = _bias_of_distances(builder, inputs["distance_bias"], *places)
        scores = builder.add("Add", [scores, bias])
    if "relative_keys" in inputs:
        rows = _rows_of_distances(builder, inputs["relative_keys"], *places)  # (T, S, H)
        relative = _by_query(builder, query, builder.transpose(rows, [0, 2, 1]))
        scores = builder.add("Add", [scores, relative])
    seen = _causal_behind(builder, inputs.get("prefix_lengths"), *places)
    masked = builder.add("Where", [seen, scores, builder.constant(np.float32(MASKED_SCORE))])
    weights = builder.add("Softmax", [masked], axis=-1)
    if "relative_values" in inputs:
        contexts = builder.add("MatMul", [weights, values])
        rows = _rows_of_distances(builder, inputs["relative_values"], *places)
        relative = _by_query(builder, weights, rows)
        builder.add("Add", [contexts, relative], outputs=[outputs[0]])
    else:
        builder.add("MatMul", [weights, values], outputs=[outputs[0]])
    for index, cache in ((1, keys), (2, values)):
        if index in outputs:
            builder.add("Identity", [cache], outputs=[outputs[index]])


def _as_rows(builder, tensor, width):
    """Return (B, N, T, H) as (B, T, N H)."""
    rows = builder.add("Transpose", [tensor], perm=[0, 2, 1, 3])
    return builder.add("Reshape", [rows, builder.integers(0, 0, width)])


def _may_attend(builder, mask, axis=None):
    """Return (B, N, T, 1), less an axis of 1: one where a query attends to something, else zero."""
    steps = builder.add("Cast", [mask], to=TensorProto.FLOAT)
    some = builder.add("ReduceMax", [steps], axes=[-1], keepdims=1)
    return some if axis is None else builder.add("Squeeze", [some, builder.integers(axis)])


def _length(builder, tensor):
    """Return [T] of a (B, N, T, H) tensor."""
    known = builder.shape(tensor)[2]
    if known >= 0:
        return builder.integers(known)
    shape = builder.add("Shape", [tensor])
    return builder.add("Slice", [shape, builder.integers(2), builder.integers(3)])


def _with_causality(builder, mask, query, key):
    """Return the mask combined with causality; the last query is aligned with the last key."""
    places = _places(builder, _length(builder, query), _length(builder, key))
    seen = _causal_behind(builder, None, *places)
    return seen if mask is None else builder.add("And", [mask, seen])


def _causal_behind(builder, prefix, queries, keys):
    """Return (B or 1, 1, T, S): whether a key is not after the query, or in the (B,) prefix."""
    seen = builder.add("LessOrEqual", [keys, queries])
    seen = builder.add("Unsqueeze", [seen, builder.integers(0, 1)])
    if prefix is None:
        return seen
    lengths = builder.add("Cast", [prefix], to=TensorProto.INT64)
    lengths = builder.add("Unsqueeze", [lengths, builder.integers(1, 2, 3)])
    return builder.add("Or", [seen, builder.add("Less", [keys, lengths])])


def _places(builder, target_length, source_length):
    """Return positions of queries (T, 1) and keys (S,), which end together, from [T] and [S]."""
    target, source = (builder.add("Squeeze", [size]) for size in (target_length, source_length))
    zero, one = builder.constant(np.int64(0)), builder.constant(np.int64(1))
    first = builder.add("Sub", [source, target])
    queries = builder.add("Range", [first, source, one])
    keys = builder.add("Range", [zero, source, one])
    return builder.add("Unsqueeze", [queries, builder.integers(1)]), keys


def _lower_layer_norm(builder, inputs, outputs, epsilon):
    builder.add(
        "LayerNormalization",
        [inputs["inputs"], inputs["gamma"], inputs["beta"]],
        outputs=[outputs[0]],
        axis=-1,
        epsilon=epsilon,
    )


def _lower_gelu(builder, inputs, outputs, approximate):
    operator = "FastGelu" if approximate else "Gelu"
    builder.add(operator, [inputs["inputs"]], outputs=[outputs[0]], domain=MICROSOFT)


LOWERINGS = {
    "attention": _lower_attention,
    "cached_attention": _lower_cached_attention,
    "layer_norm": _lower_layer_norm,
    "gelu": _lower_gelu,
}
PORTABLE_LOWERINGS = {
    "cached_attention": _lower_cached_attention_portably,
    "layer_norm": _lower_layer_norm,
}
