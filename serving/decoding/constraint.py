"""Restrict targets to those that an automaton allows."""

from typing import Any

import numpy as np


class Constraint:
    """The tokens that may follow each beam.

    Args:
        automaton: has integer states: `allowed(states, room)` returns which tokens may follow,
            `advance(states, token_ids)` the next states; see `serving.text.TokenAutomaton`.
        first: (sources,) the first state of each source's target, after its prompt.
        room: (sources,) the most tokens of a target, not counting its prompt.
    """

    def __init__(self, automaton: Any, first: np.ndarray, room: np.ndarray):
        self.automaton, self.first, self.room = automaton, first, room

    def begin(self, prefix: Any) -> np.ndarray:
        """Return the (B, K) states before the first step."""
        return np.broadcast_to(self.first[prefix.sources, np.newaxis], prefix.token_ids.shape[:2])

    def follow(
        self, states: np.ndarray, prefix: Any, token_ids: np.ndarray, beam_index: np.ndarray
    ) -> np.ndarray:
        """Return the states of the beams that continue by these tokens; see `Prefix.extended`."""
        sources, beams = np.divmod(beam_index, states.shape[1])
        states = states[sources, beams]
        is_prompt = prefix.generated[sources[:, 0]] < 0
        token_ids = token_ids.reshape(*beam_index.shape, -1)[..., -1]
        followed = self.automaton.advance(states, token_ids)
        return np.where(is_prompt[:, np.newaxis], states, followed)

    def allowed(self, states: np.ndarray, prefix: Any) -> np.ndarray:
        """Return (B, K, V) booleans; within a prompt any token may follow."""
        left = self.room[prefix.sources] - prefix.generated
        tokens = self.automaton.allowed(states, left[:, np.newaxis])
        return tokens | (prefix.generated < 0)[:, np.newaxis, np.newaxis]
