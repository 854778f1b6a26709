"""The best answer span, from the logits of its start and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras import ops

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor


def best_spans(
    start_logits: Tensor, end_logits: Tensor, max_length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the most probable span of each row that is not too long.

        (start, end) = arg-max of p_start(i) p_end(j) over i <= j < i + max_length

    Ties go to the span that starts first, then to the shortest.

    Args:
        start_logits, end_logits: (B, T), very low at positions that can not be.
        max_length: the most positions in a span.

    Returns:
        starts, ends: (B,) int32, both within the span.
        scores: (B,) float32, log p_start(start) + log p_end(end).

    Raises:
        ValueError: if max_length is under 1.

    Reference: Seo et al. 2017, section 2, "Test", https://arxiv.org/abs/1611.01603

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import best_spans
        >>> start = np.array([[0.0, 3.0, 0.0, 1.0]])
        >>> end = np.array([[4.0, 0.0, 2.0, 3.0]])  # the likely end lies before the start
        >>> starts, ends, scores = best_spans(start, end, max_length=2)
        >>> ops.convert_to_numpy(starts).tolist(), ops.convert_to_numpy(ends).tolist()
        ([1], [2])
    """
    if max_length < 1:
        raise ValueError(f"best_spans: max_length must be at least 1; received {max_length}.")
    starts, ends = (
        ops.log_softmax(ops.cast(logits, "float32")) for logits in (start_logits, end_logits)
    )
    behind = ops.pad(ends, [[0, 0], [0, max_length - 1]], constant_values=-float("inf"))
    span = ops.arange(ops.shape(starts)[1])[:, None] + ops.arange(max_length)  # (T, max_length)
    scores = starts[:, :, None] + ops.take(behind, span, axis=1)  # (B, T, max_length)
    scores = ops.reshape(scores, (-1, ops.shape(starts)[1] * max_length))
    best = ops.argmax(scores, axis=-1)
    start = ops.cast(best // max_length, "int32")
    end = start + ops.cast(best % max_length, "int32")
    return start, end, ops.max(scores, axis=-1)
