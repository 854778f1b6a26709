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
