"""Choose tokens from all logits: for processors, sampling and constraints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .constraint import Constraint
from .results import LOGITS, Candidates


@dataclass(frozen=True, eq=False)
class Prefix:
    """The tokens chosen so far.

    Attributes:
        token_ids: (B, K, T), prompt included.
        sources: (B,) the index of each row's source.
        generated: (B,) the number of tokens after the prompt; negative within a prompt.
    """

    token_ids: np.ndarray
    sources: np.ndarray
    generated: np.ndarray

    def extended(self, token_ids: np.ndarray, beam_index: np.ndarray) -> "Prefix":
        """Return the prefix of the (B', K') beams that continue by these tokens."""
        sources, beams = np.divmod(beam_index, self.token_ids.shape[1])
        longer = [self.token_ids[sources, beams], token_ids.reshape(*beam_index.shape, -1)]
        rows = sources[:, 0]
        return Prefix(np.concatenate(longer, axis=-1), self.sources[rows], self.generated[rows] + 1)


class FromLogits:
    """Chooses the candidates of a search from all logits.

    A constraint applies before the processors. The probability that it removes counts in the
    scores, so they say how well an answer fits the model, and a beam search finds the best allowed
    answer:

        log p(y) = log P(allowed) + log p(y | allowed),   P the model's, p(y | allowed) as processed

    Args:
        prefix: the `Prefix` before the first token is chosen.
        processors: functions of logits, see `serving.decoding.processors`.
        choose: (log_probs (B, K, V), k, prefix) -> `Candidates`.
        constraint: a `Constraint`; None: any token may follow.
    """

    reads = frozenset({LOGITS})

    def __init__(
        self,
        prefix: Prefix,
        processors: Sequence[Callable],
        choose: Callable,
        constraint: Constraint | None = None,
    ):
        self.processors, self.choose = processors, choose
        self.constraint = constraint
        self._prefix = prefix
        self._states: Any = None if constraint is None else constraint.begin(prefix)
        self._is_first = True

    def __call__(
        self, given: Candidates, token_ids: np.ndarray, beam_index: np.ndarray, k: int
    ) -> Candidates:
        """Return the candidates of a step that read tokens of beams; see `serving.decoding`."""
        if not self._is_first:
            if self.constraint is not None:
                self._states = self.constraint.follow(
                    self._states, self._prefix, token_ids, beam_index
                )
            self._prefix = self._prefix.extended(token_ids, beam_index)
        self._is_first = False
        log_probs = self._log_probs(given.logits, self._prefix, self._states)
        chosen = self.choose(log_probs, k, self._prefix)
        return Candidates(chosen.log_probs, chosen.token_ids, given.attention_weights)

    def _log_probs(self, logits, prefix, states):
        if self.constraint is None:
            return log_softmax(self._processed(logits, prefix))
        allowed = self.constraint.allowed(states, prefix)
        log_probs = np.where(allowed, log_softmax(logits), np.float32(-np.inf))
        if not self.processors:
            return log_probs
        return log_softmax(self._processed(log_probs, prefix)) + _log_sum(log_probs)

    def _processed(self, logits, prefix):
        for processor in self.processors:
            logits = processor(logits, prefix)
        return logits


def most_probable(log_probs: np.ndarray, k: int, prefix: Prefix | None = None) -> Candidates:
    """Return the k best `Candidates`; of two equal ones, the lower id comes first."""
    log_probs = np.where(np.isnan(log_probs), np.float32(-np.inf), log_probs)
    if k == 1:
        token_ids = np.argmax(log_probs, axis=-1)[..., np.newaxis]
    else:
        token_ids = _top(log_probs, min(k, log_probs.shape[-1]))
    return Candidates(np.take_along_axis(log_probs, token_ids, axis=-1), token_ids)


class Sample:
    """Draw tokens from the model's distribution.

        u(t) ~ uniform on [0, 1),   y(t) = the first i with  p(1) + ... + p(i) > u(t)

    All u are drawn before the first step, separately for each source, so the other sources of the
    batch do not change the result.

    Args:
        uniform: (sources, T) numbers in [0, 1).
    """

    def __init__(self, uniform: np.ndarray):
        self.uniform = uniform

    def __call__(self, log_probs: np.ndarray, k: int, prefix: Prefix) -> Candidates:
        places = np.clip(prefix.generated, 0, self.uniform.shape[1] - 1)
        uniform = self.uniform[prefix.sources, places]
        token_ids = inverse_cdf(log_probs[:, 0], uniform)[:, np.newaxis, np.newaxis]
        return Candidates(np.take_along_axis(log_probs, token_ids, axis=-1), token_ids)


def inverse_cdf(log_probs, uniform):
    """Map (B, V) log-probabilities and (B,) numbers in [0, 1) to (B,) token ids.

    A token of probability zero is never chosen.
    """
    sums = np.cumsum(np.exp(log_probs), axis=-1)
    reached = sums > uniform[:, np.newaxis] * sums[:, -1:]
    return np.argmax(reached, axis=-1)


def log_softmax(logits):
    """Return (..., V) log-probabilities; nan where no token may be chosen."""
    with np.errstate(invalid="ignore"):
        shifted = logits - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def _log_sum(log_probs):
    """Return (..., 1) the log of the sum of probabilities; -inf where all are zero."""
    best = np.max(log_probs, axis=-1, keepdims=True)
    best = np.where(np.isfinite(best), best, 0)
    with np.errstate(divide="ignore"):
        return best + np.log(np.sum(np.exp(log_probs - best), axis=-1, keepdims=True))


def _top(values, k):
    """Return (..., k) indices of the k largest values, the largest first; ties by lower index."""
    least = np.partition(values, -k, axis=-1)[..., -k, np.newaxis]
    among = values >= least
    if np.count_nonzero(among) == values.size // values.shape[-1] * k:
        places = np.nonzero(among)[-1].reshape(*values.shape[:-1], k)
    else:  # of values equal to the k-th, the first ones
        rank = np.where(values > least, 2, among).astype(np.int8)
        places = np.sort(np.argsort(-rank, axis=-1, kind="stable")[..., :k], axis=-1)
    best = np.take_along_axis(values, places, axis=-1)
    return np.take_along_axis(places, np.argsort(-best, axis=-1, kind="stable"), axis=-1)
