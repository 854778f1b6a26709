"""The most probable token that may follow: mostly the graph's own best candidate."""

import numpy as np

from .choosing import log_softmax, most_probable
from .constraint import Constraint
from .results import BEST, LOGITS, Candidates, Prompts


class MostProbableAllowed:
    """Chooses the candidate of a greedy search under a constraint.

        y_n = argmax over the allowed y of p(y | y_<n),  score log p(y_n | y_<n)

    Its results equal `FromLogits`'s with `most_probable`. It looks at all logits only if the
    graph's best candidate is not allowed: that in every step takes three times as long for a small
    model. The search must continue by the candidate, and within a prompt by the prompt.

    Args:
        constraint: a `Constraint`, whose automaton has `distances` as a `TokenAutomaton`.
        prompts: `Prompts` of the search.
    """

    reads = frozenset({BEST, LOGITS})

    def __init__(self, constraint: Constraint, prompts: Prompts):
        self.constraint, self.prompts = constraint, prompts
        self._max_lengths = constraint.room + prompts.lengths
        self._sources, self._states = np.arange(len(self._max_lengths)), constraint.first
        self._length = 0

    def __call__(
        self, given: Candidates, token_ids: np.ndarray, beam_index: np.ndarray, k: int
    ) -> Candidates:
        """Return the candidates of a step that read tokens of beams; see `serving.decoding`."""
        length, self._length = self._length, self._length + 1
        if length:  # the first step reads each source's own row, whatever that begins with
            rows = beam_index[:, 0]
            self._sources, self._states = self._sources[rows], self._states[rows]
        states, automaton = self._states, self.constraint.automaton
        following = automaton.advance(states, given.token_ids[:, 0, 0])
        room = self._max_lengths[self._sources] - length
        may_follow = automaton.distances[following] < room
        if length < self.prompts.longest:
            in_prompt = length < self.prompts.lengths[self._sources]
            following = np.where(in_prompt, states, following)
            may_follow |= in_prompt
        if not may_follow.all():
            rows = np.flatnonzero(~may_follow)
            given = self._instead(given, rows, automaton.allowed(states[rows], room[rows]))
            following[rows] = automaton.advance(states[rows], given.token_ids[rows, 0, 0])
        self._states = following
        return given

    def _instead(self, given, rows, allowed):
        """Return the candidates with the best of the (rows, V) allowed tokens in some rows."""
        best = most_probable(
            np.where(allowed, log_softmax(given.logits[rows, 0]), np.float32(-np.inf)), 1
        )
        log_probs, token_ids = given.log_probs.copy(), given.token_ids.copy()
        log_probs[rows, 0], token_ids[rows, 0] = best.log_probs, best.token_ids
        return Candidates(log_probs, token_ids, given.attention_weights)
