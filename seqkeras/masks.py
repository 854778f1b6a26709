"""Masks are booleans, True = may attend; softmax under a mask.

A mask between queries and keys has shape (B or 1, T or 1, S), so a padding mask of the keys enters
as `padding_mask(lengths, length)[:, None]`. Where T and S differ, as they do beside a cache, the
last query is at the last key: query t stands at position t + S - T.
"""

import functools

import keras
import numpy as np
from keras import ops

from seqkeras.tensors import Tensor
from seqkeras.values import known_numbers

MASKED_SCORE = -1e30  # the score of masked positions: far below any real one, and finite in float32


def padding_mask(lengths: Tensor, length: int | Tensor) -> Tensor:
    """Return a boolean (B, length) mask of sequences padded on the right.

    Args:
        lengths: (B,) integers, the number of real steps of each row.
        length: the padded length, a number or a scalar tensor.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import padding_mask
        >>> ops.convert_to_numpy(padding_mask(np.array([1, 3]), 3)).tolist()
        [[True, False, False], [True, True, True]]
    """
    lengths = ops.convert_to_tensor(lengths)
    return ops.cast(ops.arange(length), lengths.dtype)[None, :] < lengths[:, None]


def causal_mask(target_length: int | Tensor, source_length: int | Tensor | None = None) -> Tensor:
    """Return a boolean (1, T, S) mask: a query attends to its own position and to earlier ones.

    Args:
        target_length: T, a number or a scalar tensor.
        source_length: S, in the same way; None for T.

    Reference: Vaswani et al. 2017, section 3.2.3, https://arxiv.org/abs/1706.03762

    Example:
        >>> from keras import ops
        >>> from seqkeras.attention import causal_mask
        >>> mask = causal_mask(2, source_length=3)  # the last query is at the last key
        >>> ops.convert_to_numpy(mask).tolist()
        [[[True, True, False], [True, True, True]]]
    """
    return distances_between(target_length, source_length) >= 0


def window_mask(
    target_length: int | Tensor, before: int, after: int, source_length: int | Tensor | None = None
) -> Tensor:
    """Return a boolean (1, T, S) mask: query t attends to positions from t - before to t + after.

    Args:
        target_length, source_length: see `causal_mask`.
        before, after: how far a query sees, numbers of positions.

    Raises:
        ValueError: if before or after is negative.

    Reference: Vaswani et al. 2017, section 4 ("restricted"), https://arxiv.org/abs/1706.03762

    Example:
        >>> from keras import ops
        >>> from seqkeras.attention import window_mask
        >>> ops.convert_to_numpy(window_mask(3, before=1, after=0))[0, 2].tolist()
        [False, True, True]
    """
    if before < 0 or after < 0:
        raise ValueError(
            f"window_mask: before and after must be at least 0; received {before} and {after}."
        )
    distances = distances_between(target_length, source_length)
    return ops.logical_and(distances <= before, distances >= -after)


def prefix_mask(prefix_lengths: Tensor, length: int | Tensor) -> Tensor:
    """Return a boolean (B, T, T) mask of a prefix language model: both ways in the prefix, causal
    after it.

    Args:
        prefix_lengths: (B,) integers, the steps of each row that every query may attend to.
        length: T, a number or a scalar tensor.

    Reference: Raffel et al. 2020, section 3.2.1, https://arxiv.org/abs/1910.10683

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import prefix_mask
        >>> ops.convert_to_numpy(prefix_mask(np.array([2]), 3)).astype(int).tolist()
        [[[1, 1, 0], [1, 1, 0], [1, 1, 1]]]
    """
    return ops.logical_or(causal_mask(length), padding_mask(prefix_lengths, length)[:, None])


def permutation_mask(order: Tensor, stream: str = "content") -> Tensor:
    """Return a boolean (B or 1, T, T) mask of a permutation language model: earlier positions in a
    given order.

    Args:
        order: (B, T) or (T,) integers, the positions in the order in which they are predicted.
        stream: "content", whose queries also see themselves, or "query", whose queries do not (the
            first one in the order sees nothing).

    Raises:
        ValueError: if the stream is another, or the order no permutation of 0, 1, ... T - 1.

    Reference: Yang et al. 2019, sections 2.2 and 2.3 (XLNet), https://arxiv.org/abs/1906.08237

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import permutation_mask
        >>> mask = permutation_mask(np.array([2, 0, 1]), stream="query")
        >>> ops.convert_to_numpy(mask).astype(int).tolist()  # position 2 is first: it sees nothing
        [[[0, 0, 1], [1, 0, 1], [0, 0, 0]]]
    """
    if stream not in ("content", "query"):
        raise ValueError(
            f'permutation_mask: stream must be "content" or "query"; received {stream!r}.'
        )
    order = ops.convert_to_tensor(order)
    order = order if len(order.shape) == 2 else order[None]
    known = known_numbers(order)
    if known is not None and np.any(np.sort(known, axis=-1) != np.arange(known.shape[-1])):
        raise ValueError(
            "permutation_mask: order must hold every position from 0 to "
            f"{known.shape[-1] - 1} once in each row; received {known.tolist()}."
        )
    ranks = ops.argsort(order, axis=-1)
    queries, keys = ranks[:, :, None], ranks[:, None]
    return keys <= queries if stream == "content" else keys < queries


def combine_masks(*masks) -> Tensor | None:
    """Return the conjunction of masks; None allows everything, and is the result if all are None.

    Args:
        masks: booleans of one rank whose shapes broadcast, or None.

    Raises:
        ValueError: if their ranks differ: a (B, S) mask would broadcast to wrong queries.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.attention import causal_mask, combine_masks, padding_mask
        >>> mask = combine_masks(causal_mask(3), padding_mask(np.array([2]), 3)[:, None], None)
        >>> ops.convert_to_numpy(mask).astype(int).tolist()
        [[[1, 0, 0], [1, 1, 0], [1, 1, 0]]]
    """
    given = [ops.convert_to_tensor(mask) for mask in masks if mask is not None]
    if len({len(mask.shape) for mask in given}) > 1:
        shapes = ", ".join(str(tuple(mask.shape)) for mask in given)
        raise ValueError(
            f"combine_masks: masks must have the same rank; received {shapes}. A padding mask "
            "(batch, source) becomes one of attention by mask[:, None]."
        )
    return functools.reduce(ops.logical_and, given) if given else None


def with_padding(attention_mask, *padding_masks):
    """Return an attention mask that leaves out the padding of the keys too; None where all are
    None.

    Args:
        attention_mask: (B or 1, T or 1, S), or with an axis of heads (B or 1, N or 1, T or 1, S).
        padding_masks: (B, S) booleans, True for real steps, or None.
    """
    padding = [mask[:, None] for mask in padding_masks if mask is not None]  # (B, 1, S)
    if attention_mask is not None and len(attention_mask.shape) == 4:
        padding = [mask[:, None] for mask in padding]
    return combine_masks(attention_mask, *padding)


def attended(attention_mask):
    """Return (B or 1, S) mask: the keys that some query may attend to; None where the mask is None.

    Args:
        attention_mask: (B or 1, T or 1, S), or with an axis of heads (B or 1, N or 1, T or 1, S).
    """
    if attention_mask is None:
        return None
    return ops.any(attention_mask, axis=tuple(range(1, len(attention_mask.shape) - 1)))


def mask_scores(scores, mask=None):
    """Return scores for a softmax, in float32 at least, with `MASKED_SCORE` at masked positions.

    In float16, whose products overflow at 65,504, an infinite score becomes one of 1e21 or -1e21;
    in every other dtype it stays infinite.
    """
    dtype = keras.backend.result_type(scores.dtype, "float32")
    if keras.backend.standardize_dtype(scores.dtype) == "float16":
        scores = ops.clip(ops.cast(scores, dtype), MASKED_SCORE / 1e9, -MASKED_SCORE / 1e9)
    scores = ops.cast(scores, dtype)
    return scores if mask is None else ops.where(mask, scores, ops.cast(MASKED_SCORE, dtype))


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the softmax over the last axis where the mask allows; a row that allows nothing is
    zeros.

        weights = any(mask) * softmax(where(mask, scores, MASKED_SCORE))

    Args:
        scores: (..., S).
        mask: booleans that broadcast to the scores, True = may attend, or None.

    Returns:
        (..., S) weights, of the dtype of the scores.

    Example:
        >>> from keras import ops
        >>> from seqkeras.attention import masked_softmax
        >>> mask = ops.array([[True, True, False], [False, False, False]])
        >>> ops.convert_to_numpy(masked_softmax(ops.zeros((2, 3)), mask)).tolist()
        [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    allowed = mask_scores(scores, mask)
    if scores.shape[-1] == 1:  # `ops.softmax` warns of this
        weights = ops.exp(ops.log_softmax(allowed, axis=-1))
    else:
        weights = ops.softmax(allowed, axis=-1)
    weights = ops.cast(weights, scores.dtype)
    if mask is None:
        return weights
    return weights * ops.cast(ops.any(mask, axis=-1, keepdims=True), scores.dtype)


def distances_between(target_length, source_length=None):
    """Return (1, T, S) integers: how far before the query the key is; for lengths see
    `causal_mask`."""
    source_length = target_length if source_length is None else source_length
    positions = ops.arange(target_length) + (source_length - target_length)
    return (positions[:, None] - ops.arange(source_length)[None])[None]
