"""The most probable token that may follow: mostly the graph's own best candidate."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .choosing import log_softmax, most_probable
from .constraint import Constraint
from .results import Candidates, Prompts


class MostProbableAllowed:
    """A step of `serving.decoding` for a greedy search under a constraint.

        y_n = argmax over the allowed y of p(y | y_<n),  score log p(y_n | y_<n)

    Its results equal `ChoosingStep`'s with `most_probable`. It reads all logits only if the
    graph's best candidate is not allowed: reading them in every step takes three times as long for
    a small model. The search must continue by the candidate, and within a prompt by the prompt.

    Args:
        step: (token_ids, beam_index, state) -> (the best `Candidates` (B, 1, 1), logits (B, 1, V),
            state).
        constraint: a `Constraint`, whose automaton has `distances` as a `TokenAutomaton`.
        prompts: `Prompts` of the search.
    """

    def __init__(self, step: Callable, constraint: Constraint, prompts: Prompts):
        self.step, self.constraint, self.prompts = step, constraint, prompts
        self._max_lengths = constraint.room + prompts.lengths

    def initial(self, state: Any) -> tuple[Any, ...]:
        sources = np.arange(len(self._max_lengths))
        return state, sources, self.constraint.first, 0

    def __call__(
        self, token_ids: np.ndarray, beam_index: np.ndarray, k: int, state: tuple[Any, ...]
    ) -> tuple[Candidates, tuple[Any, ...]]:
        state, sources, states, length = state
        if length:  # the first step reads each source's own row, whatever that begins with
            rows = beam_index[:, 0]
            sources, states = sources[rows], states[rows]
        chosen, logits, state = self.step(token_ids, beam_index, state)
        automaton = self.constraint.automaton
        following = automaton.advance(states, chosen.token_ids[:, 0, 0])
        room = self._max_lengths[sources] - length
        may_follow = automaton.distances[following] < room
        if length < self.prompts.longest:
            in_prompt = length < self.prompts.lengths[sources]
            following = np.where(in_prompt, states, following)
            may_follow |= in_prompt
        if not may_follow.all():
            rows = np.flatnonzero(~may_follow)
            chosen = self._instead(
                chosen, logits, rows, automaton.allowed(states[rows], room[rows])
            )
            following[rows] = automaton.advance(states[rows], chosen.token_ids[rows, 0, 0])
        return chosen, (state, sources, following, length + 1)

    def _instead(self, choices, logits, rows, allowed):
        """Return the candidates with the best of the (rows, V) allowed tokens in some rows."""
        best = most_probable(
            np.where(allowed, log_softmax(logits[rows, 0]), np.float32(-np.inf)), 1
        )
        log_probs, token_ids = choices.log_probs.copy(), choices.token_ids.copy()
        log_probs[rows, 0], token_ids[rows, 0] = best.log_probs, best.token_ids
        return Candidates(log_probs, token_ids, choices.attention_weights)
