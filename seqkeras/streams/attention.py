"""Attention in a stream: the keys and values of the last frames, and sums over all frames."""

import keras
from keras import ops

from seqkeras.attention import (
    MultiHeadAttention,
    RestrictedSelfAttention,
    StructuredSelfAttention,
)
from seqkeras.streams.flow import Flow, StreamError
from seqkeras.streams.walk import canonical, streamed


@streamed.register
def _(
    layer: RestrictedSelfAttention,
    walk,
    sequence,
    mask=None,
    training=False,
    attention_mask=None,
    causal=None,
    distance_bias=None,
):
    if not (layer.causal if causal is None else causal):
        raise StreamError(
            f"{layer.name} attends to {layer.window} frames that are to come; set causal=True."
        )
    if attention_mask is not None:
        raise StreamError(f"{layer.name}: frames before the present one have no attention_mask.")
    x, real = walk.without_padding(sequence, walk.mask_of(sequence, mask))
    query = layer._project(x, layer.query_kernel, layer.query_bias)
    key = layer._project(x, layer.key_kernel, layer.key_bias)
    value = layer._project(x, layer.value_kernel, layer.value_bias)
    if real is None:
        real = ops.ones_like(x[..., 0], dtype="bool")
    window = layer.window
    key = walk.after(walk.name(layer, "key"), key, window)
    value = walk.after(walk.name(layer, "value"), value, window)
    real = walk.after(walk.name(layer, "real"), real, window)  # (B, r + T)
    length = walk.size[1]
    distances = ops.arange(length)[:, None] + window - ops.arange(window + length)[None]
    near = ops.logical_and(distances >= 0, distances <= window)  # (T, r + T)
    near = ops.logical_and(near, real[:, None])[:, None]  # (B, 1, T, r + T)
    split = (layer._split(tensor) for tensor in (query, key, value))
    contexts = layer._attend(*split, near, False, walk.training, distance_bias, distances[None])
    contexts = layer._merge(contexts)
    return sequence.with_tensor(layer._project_output(contexts))


@streamed.register(MultiHeadAttention)
@streamed.register(keras.layers.MultiHeadAttention)
@streamed.register(keras.layers.GroupQueryAttention)
@streamed.register(keras.layers.Attention)
@streamed.register(keras.layers.AdditiveAttention)
def _(layer, walk, *args, **kwargs):
    raise StreamError(
        f"{layer.name} ({type(layer).__name__}) attends to all frames, and a stream has no "
        "last one; use seqkeras.attention.RestrictedSelfAttention(..., causal=True), or "
        "attention_window and causal=True of a block."
    )


@streamed.register
def _(layer: StructuredSelfAttention, walk, sequence, mask=None):
    """Return the context of the frames so far; the weights of single frames are not known.

        e(t) = exp(score(t) - m),  m = max of all scores so far
        output(t) = (s e(before) + sum of e(i) x(i)) / (the sum of e(i)),  i <= t

    The sums are in float64, so that exp(-700) is not lost beside 1; on JAX without its types of 64
    bits a score further than 87 below another of its chunk counts as none.
    """
    dtype = canonical("float64")
    x, real = walk.without_padding(sequence, walk.mask_of(sequence, mask))
    hidden = ops.tanh(ops.matmul(x, layer.hidden_kernel))
    scores = ops.cast(ops.matmul(hidden, layer.hop_kernel), dtype)  # (B, T, R)
    names = [walk.name(layer, part) for part in ("largest", "weight", "sum")]
    hops, dim = layer.num_hops, x.shape[-1]
    shapes = [(hops,), (hops,), (hops, dim)]
    largest, weight, total = (
        walk.recall(name, shape, dtype) for name, shape in zip(names, shapes, strict=True)
    )
    lowest = ops.cast(-1e30, dtype)
    seen = scores if real is None else ops.where(real[..., None], scores, lowest)
    none = ops.equal(weight, 0)
    highest = ops.maximum(ops.max(seen, axis=1), ops.where(none, lowest, largest))  # (B, R)
    kept = ops.where(none, ops.zeros_like(weight), ops.exp(largest - highest))
    shares = ops.exp(seen - highest[:, None])  # (B, T, R)
    if real is not None:
        shares = ops.where(real[..., None], shares, ops.zeros_like(shares))
    x = ops.cast(x, dtype)[:, :, None] * shares[..., None]  # (B, T, R, D)
    weights = (weight * kept)[:, None] + ops.cumsum(shares, axis=1)
    totals = (total * kept[..., None])[:, None] + ops.cumsum(x, axis=1)
    for name, tensor in zip(names, (highest, weights[:, -1], totals[:, -1]), strict=True):
        walk.keep(name, tensor)
    weights = weights[..., None]
    contexts = totals / ops.where(weights > 0, weights, ops.ones_like(weights))
    contexts = ops.cast(contexts, layer.compute_dtype)
    contexts = ops.reshape(contexts, (*walk.size, hops * dim))
    return walk.so_far(layer, sequence, contexts), Flow(None, sequence.kind)
