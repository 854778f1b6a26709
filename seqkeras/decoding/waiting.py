"""Prompts that are read whole, before a loop that counts the steps of all rows alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from keras import ops

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor

# Entries of a state: how many steps a row waits, and the logits after its prompt.
WAITS, BEHIND = "waits", "logits_behind_prompt"


def behind_prompts(
    read: Callable[..., Any],
    token_ids: Tensor,
    lengths: Tensor,
    state: Mapping[str, Tensor],
    waits: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (B, 1, V) logits after prompts that are read in both directions, and the state that
    `waiting` takes.

    Args:
        read: reads tokens after a state, as `GPT.read`.
        token_ids: (B, P) prompts, padded on the right.
        lengths: (B,), at least 1.
        state: the state before them, of one beam.
        waits: (B,) integers, for how many steps each row waits.
    """
    logits, state = read(token_ids, lengths, state, prefix_lengths=lengths)
    last = ops.cast(lengths - 1, "int32")[:, None, None]
    logits = ops.take_along_axis(logits, last, axis=1)
    return logits, {**state, WAITS: ops.cast(waits, "int32")[:, None], BEHIND: logits}


def waiting(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step for rows that have read their prompts: a waiting row keeps its state, and
    answers with the logits after its prompt."""

    def stepped(last, state):
        state = dict(state)
        waits, behind = state.pop(WAITS), state.pop(BEHIND)
        (logits,), after = step(last, state)
        is_waiting = waits > 0

        def stay(before, further):
            rank = len(before.shape) - len(is_waiting.shape)
            return ops.where(
                ops.reshape(is_waiting, (*ops.shape(waits), *[1] * rank)), before, further
            )

        after = {name: stay(state[name], after[name]) for name in state}
        after |= {WAITS: ops.maximum(waits - 1, 0), BEHIND: behind}
        return (stay(behind, logits),), after

    return stepped
