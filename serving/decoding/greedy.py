"""Greedy search: one sequence for each source, extended by its best candidate."""

from collections.abc import Callable

import numpy as np

from .results import Candidates, Hypothesis, Prompts, length_divisor


class Greedy:
    """One beam a source, extended by its best candidate.

    Args:
        end_id, max_lengths, length_penalty: as for `serving.decoding.search`.
        prompts: `Prompts`.
        stops: (source, generated ids) -> whether the text ends there without <eos>; None: never.

    Attributes:
        sources: (B,) indices of the sources still in the batch.
    """

    num_beams = num_candidates = 1

    def __init__(
        self,
        end_id: int,
        max_lengths: np.ndarray,
        prompts: Prompts,
        length_penalty: float = 0.0,
        stops: Callable[[int, list[int]], bool] | None = None,
    ):
        self.end_id, self.max_lengths, self.prompts = end_id, max_lengths, prompts
        self.alpha, self.stops = length_penalty, stops
        self.token_ids = np.zeros((len(max_lengths), max_lengths.max(initial=0)), dtype=np.int64)
        self.lengths = np.zeros(len(max_lengths), dtype=np.int64)  # of the finished sources
        self.totals = np.zeros(len(max_lengths))  # log-probability so far
        self.ended = np.zeros(len(max_lengths), dtype=bool)  # by <eos>
        self.attention_weights = []  # for each step the sources and their weights, or None
        self.length = 0
        self._follow(np.arange(len(max_lengths)))

    def _follow(self, sources):
        self.sources, self._max_lengths = sources, self.max_lengths[sources]
        self._shortest = self._max_lengths.min(initial=self.token_ids.shape[1])
        self._rows = np.arange(len(sources))[:, np.newaxis]

    def extend(self, candidates: Candidates, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Add a token to every source; return the (B, 1) tokens and rows of those that continue."""
        sources, self.length = self.sources, length
        candidates = self.prompts.force(candidates, sources, length)
        token_ids = candidates.token_ids[:, :, 0]
        self.token_ids[sources, length - 1] = token_ids[:, 0]
        self.totals[sources] += candidates.log_probs[:, 0, 0]
        self.attention_weights.append((sources, candidates.attention_weights))
        ended = token_ids[:, 0] == self.end_id
        if length <= self.prompts.longest:
            ended &= length > self.prompts.lengths[sources]
        leaves = ended
        if length >= self._shortest:
            leaves = ended | (self._max_lengths <= length)
        if self.stops:
            leaves = leaves | [self._stops(source) for source in sources]
        if not np.count_nonzero(leaves):
            return token_ids, self._rows
        self.ended[sources], self.lengths[sources[leaves]] = ended, length
        self._follow(sources[~leaves])
        return token_ids[~leaves], np.flatnonzero(~leaves)[:, np.newaxis]

    def _stops(self, source):
        behind = self.length > self.prompts.lengths[source]
        return behind and self.stops(source, self.generated(source))

    def generated(self, source: int) -> list[int]:
        """Return the ids of a source after its prompt so far, without <eos>."""
        end = self.lengths[source] or self.length
        begin = self.prompts.lengths[source]
        token_ids = self.token_ids[source, begin:end].tolist()
        return token_ids[:-1] if token_ids[-1:] == [self.end_id] else token_ids

    def finished(self) -> list[list[Hypothesis]]:
        """Return for each source the list of its one `Hypothesis`."""
        generated = np.maximum(self.lengths - self.prompts.lengths, 0)  # 0: not yet finished
        scores = self.totals / length_divisor(generated, self.alpha)
        weights = self._weights()
        ends = self.lengths - self.ended
        return [
            [
                Hypothesis(
                    token_ids=self.token_ids[source, : ends[source]].tolist(),
                    score=float(scores[source]),
                    attention_weights=None if weights is None else weights[source, : ends[source]],
                    ended=bool(self.ended[source]),
                )
            ]
            if np.isfinite(scores[source])
            else []
            for source in range(len(scores))
        ]

    def _weights(self):
        """Return None or the (sources, T, ..., S) attention weights."""
        first = self.attention_weights[0][1] if self.attention_weights else None
        if first is None:
            return None
        shape = (*self.token_ids.shape, *first.shape[2:])
        weights = np.zeros(shape, dtype=first.dtype)
        for t, (sources, attention) in enumerate(self.attention_weights):
            weights[sources, t] = attention[:, 0]
        return weights
