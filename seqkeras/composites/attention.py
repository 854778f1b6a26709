"""Scaled dot-product attention of several heads."""

import keras
from keras import ops

from seqkeras.composites.cache import cache_distances, cache_mask, extend_cache
from seqkeras.composites.cudnn import on_gpu
from seqkeras.composites.distances import distance_scores, relative_contexts
from seqkeras.composites.nodes import composite
from seqkeras.masks import causal_mask, combine_masks, masked_softmax
from seqkeras.tensors import Tensor


@composite
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return scaled dot-product attention.

        context = softmax(scale query key^T + bias) value

    PyTorch, and JAX on a GPU, have a fused kernel, which makes no (T, S) tensor where it can. The
    others compute the formula; so does JAX on a CPU, which has no float16 kernel under jit, and so
    do all under a bias.

    Args:
        query: (B, N, T, H).
        key, value: (B, N, S, H), as a cache keeps them.
        mask: (B or 1, N or 1, T or 1, S) booleans, True = may attend, or None.
        bias: (B or 1, N, T, S) numbers, or None.
        causal: attend to no later position; the last query stands at the last key.
        scale: scale of the products, or None for 1 / sqrt(H).

    Returns:
        (B, N, T, H) contexts, zero where a query may attend to nothing.

    Raises:
        ValueError: if `causal` meets a mask that is not of rank 4.

    Reference: Vaswani et al. 2017, section 3.2.1, https://arxiv.org/abs/1706.03762

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import attention
        >>> query, value = ops.zeros((1, 1, 3, 2)), ops.reshape(ops.arange(3.0), (1, 1, 3, 1))
        >>> contexts = attention(query, query, value, None, causal=True)  # means
        >>> ops.convert_to_numpy(contexts)[0, 0, :, 0].tolist()
        [0.0, 0.5, 1.0]
    """
    backend = keras.backend.backend()
    if bias is None and (backend == "torch" or (backend == "jax" and on_gpu())):
        return _fused(query, key, value, mask, causal, scale)
    weights = attention_weights(query, key, mask, bias, causal=causal, scale=scale)
    return ops.matmul(weights, value)


@composite
def cached_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cached_key: Tensor,
    cached_value: Tensor,
    positions: Tensor,
    prefix_lengths: Tensor | None = None,
    distance_bias: Tensor | None = None,
    relative_keys: Tensor | None = None,
    relative_values: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend from T further tokens to these tokens and to the cached earlier ones.

        context(t) = softmax(query(t) [cached_key; key(1..t)]^T / sqrt(H)) [cached_value; value]

    In Keras a cache is a buffer of C places, of which each row has filled the first. As a node of a
    graph it holds the tokens before and nothing else, of every row as many, and leaves longer by T.

    Args:
        query, key, value: (B, N, T, H), of the further tokens.
        cached_key, cached_value: (B, N, C, H).
        positions: (B,) integers, how many places each row has filled.
        prefix_lengths: (B,) integers, how many of a row's first tokens all attend to each other;
            None for none.
        distance_bias, relative_keys, relative_values: (2M + 1, ·) each, or None; see
            `seqkeras.composites.distances`.

    Returns:
        (B, N, T, H) contexts, and the new cached keys and values.

    Reference: Vaswani et al. 2017, section 3.2.3, https://arxiv.org/abs/1706.03762

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import cached_attention
        >>> cache, new = ops.zeros((1, 1, 4, 2)), ops.ones((1, 1, 1, 2))
        >>> positions = ops.array([3])  # three places of four are filled
        >>> context, keys, values = cached_attention(0 * new, new, new, cache, cache, positions)
        >>> float(context[0, 0, 0, 0]), ops.convert_to_numpy(values)[0, 0, :, 0].tolist()
        (0.25, [0.0, 0.0, 0.0, 1.0])
    """
    keys = extend_cache(cached_key, key, positions)
    values = extend_cache(cached_value, value, positions)
    distances = cache_distances(positions, ops.shape(query)[2], ops.shape(keys)[2])
    mask = cache_mask(distances, prefix_lengths)[:, None]
    bias = distance_scores(query, distances, distance_bias, relative_keys)
    if relative_values is None:
        return attention(query, keys, values, mask, bias), keys, values
    weights = attention_weights(query, keys, mask, bias)
    contexts = ops.matmul(weights, values)
    return contexts + relative_contexts(weights, distances, relative_values), keys, values


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return the (B, N, T, S) weights of `attention`.

        weights = softmax(scale query key^T + bias)

    Args:
        query: (B, N, T, H).
        key: (B, N, S, H).
        mask: (B or 1, N or 1, T or 1, S) booleans, True = may attend, or None.
        bias: (B or 1, N, T, S) numbers, or None.
        causal: attend to no later position; the last query stands at the last key.
        scale: scale of the products, or None for 1 / sqrt(H).

    Returns:
        (B, N, T, S) weights, zero where a query may attend to nothing.

    Raises:
        ValueError: if `causal` meets a mask that is not of rank 4.

    Reference: Vaswani et al. 2017, section 3.2.1, https://arxiv.org/abs/1706.03762

    Example:
        >>> from keras import ops
        >>> from seqkeras.composites import attention_weights
        >>> x, mask = ops.ones((1, 1, 2, 3)), ops.array([[[[True, False]]]])
        >>> ops.convert_to_numpy(attention_weights(x, x, mask))[0, 0].tolist()
        [[1.0, 0.0], [1.0, 0.0]]
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = ops.einsum("bnth,bnsh->bnts", query * scale, key)
    scores = scores if bias is None else scores + bias
    return masked_softmax(scores, _whole_mask(query, key, mask, causal))


def _fused(query, key, value, mask, causal, scale):
    # A kernel's own causal form is the faster one, but has the first query at the first key.
    by_kernel = causal and mask is None and query.shape[2] == key.shape[2]
    if not by_kernel:
        mask = _whole_mask(query, key, mask, causal)
    query, key, value = (ops.transpose(tensor, (0, 2, 1, 3)) for tensor in (query, key, value))
    if mask is None:
        context = ops.dot_product_attention(query, key, value, scale=scale, is_causal=by_kernel)
        return ops.transpose(context, (0, 2, 1, 3))
    # A fully masked row would be NaN or the mean of the values: it attends to all, times zero.
    seen = ops.any(mask, axis=-1, keepdims=True)
    mask = ops.logical_or(mask, ops.logical_not(seen))
    mask, flash = _as_kernels_take(mask, query.shape[1], key.shape[1])
    context = ops.dot_product_attention(
        query, key, value, mask=mask, scale=scale, flash_attention=flash
    )
    return ops.transpose(context, (0, 2, 1, 3)) * ops.cast(seen, context.dtype)


def _as_kernels_take(mask, queries, keys):
    """Return a mask, and whether a fused kernel may read it: None where Keras finds out, False
    where it would not. On JAX that of cuDNN has no axis of one query, and learns even lengths."""
    if keras.backend.backend() != "jax":
        return mask, None
    if None in (queries, keys) or queries % 2 or keys % 2:
        return mask, False
    return ops.broadcast_to(mask, (*ops.shape(mask)[:2], queries, keys)), None


def _whole_mask(query, key, mask, causal):
    if not causal:
        return mask
    return combine_masks(mask, causal_mask(ops.shape(query)[2], ops.shape(key)[2])[:, None])
