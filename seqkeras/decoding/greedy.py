"""Greedy decoding: the most probable token at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from keras import ops

from seqkeras.decoding.loop import generate

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor


def greedy(
    step: Callable[..., Any],
    state: Mapping[str, Tensor],
    *,
    start_id: int | Tensor,
    end_id: int,
    max_length: int,
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Generate like `seqkeras.decoding.generate`, by the arg-max of each step; the lower id wins a
    tie.

    Args:
        step, state, start_id, max_length, options: see `seqkeras.decoding.decode`.
        end_id: the id of `<eos>`.

    Returns:
        token_ids (B, T), lengths (B,), scores (B,), like `seqkeras.decoding.generate`.

    Raises:
        ValueError: see `seqkeras.decoding.decode`.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import greedy
        >>> probs = np.array([[0.1, 0.5, 0.4], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]])  # from, to
        >>> step = lambda token_ids, state: ((ops.take(np.log(probs), token_ids, axis=0),), state)
        >>> state = {"source": np.zeros((1, 1))}
        >>> token_ids, lengths, scores = greedy(step, state, start_id=0, end_id=0, max_length=4)
        >>> ops.convert_to_numpy(token_ids).tolist(), ops.convert_to_numpy(ops.exp(scores)).round(2)
        ([[1, 0, 0, 0]], array([0.2], dtype=float32))
    """

    def most_probable(log_probs, position):
        return ops.argmax(log_probs, axis=-1)

    return generate(
        step,
        state,
        most_probable,
        start_id=start_id,
        end_id=end_id,
        max_length=max_length,
        **options,
    )
