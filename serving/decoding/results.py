"""The results of a step and of a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# What a search may read of a step: the best candidates, or all logits.
BEST, LOGITS = "best", "logits"


@dataclass(frozen=True, eq=False)
class Candidates:
    """One step's continuations of each beam.

    Attributes:
        log_probs: (B, K, C), descending.
        token_ids: (B, K, C).
        attention_weights: (B, K, S), of each head (B, K, L, N, S).
        logits: (B, K, V).

    What was not asked for is None.
    """

    log_probs: Any = None
    token_ids: Any = None
    attention_weights: np.ndarray | None = None
    logits: np.ndarray | None = None

    def of(self, rows: slice, k: int) -> "Candidates":
        """Return the candidates of some sources, the k best of each beam."""
        parts = {name: part[rows] for name, part in vars(self).items() if part is not None}
        parts |= {
            name: parts[name][:, :, :k] for name in ("log_probs", "token_ids") if name in parts
        }
        return Candidates(**parts)

    @staticmethod
    def joined(parts: Sequence["Candidates"]) -> "Candidates":
        """Return the candidates of the sources of all parts, in order."""
        names = [name for name, part in vars(parts[0]).items() if part is not None]
        return Candidates(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A finished target.

    Attributes:
        token_ids: its ids after the start, prompt included, without <eos>.
        score: the log-probability of the chosen tokens, divided by the length penalty.
        attention_weights: None, (T, S), or of each head (T, L, N, S).
        ended: whether <eos> ended it, rather than its limit.
    """

    token_ids: list[int]
    score: float
    attention_weights: np.ndarray | None
    ended: bool


def length_divisor(length: np.ndarray | int, alpha: float) -> Any:
    """Return GNMT's length penalty, the divisor of a log-probability.

        lp(Y) = ((5 + |Y|) / 6)^alpha

    Notation: |Y| counts the generated tokens, <eos> among them.

    Reference: Wu et al. 2016, section 7, equation 14, https://arxiv.org/abs/1609.08144
    """
    return ((5 + length) / 6) ** alpha


class Prompts:
    """Tokens with which each source's targets must begin.

    Their log-probability counts as 0. An <eos> among them does not end the target.

    Args:
        token_ids: for each source the list of its tokens.
    """

    def __init__(self, token_ids: Sequence[Sequence[int]]):
        self.lengths = np.array([len(row) for row in token_ids], dtype=np.int64)
        self.longest = int(self.lengths.max(initial=0))
        self.token_ids = np.zeros((len(token_ids), self.longest), dtype=np.int64)
        for padded, row in zip(self.token_ids, token_ids):
            padded[: len(row)] = row

    def force(self, candidates: Candidates, sources: np.ndarray, length: int) -> Candidates:
        """Return candidates that follow the prompt, for sources still within theirs.

        Args:
            candidates: candidates of the step.
            sources: (B,) the index of each row's source.
            length: length of the targets, with the candidates' token.
        """
        if length > self.longest:
            return candidates
        rows = np.flatnonzero(length <= self.lengths[sources])
        log_probs, token_ids = candidates.log_probs.copy(), candidates.token_ids.copy()
        log_probs[rows], log_probs[rows, :, 0] = -np.inf, 0
        token_ids[rows, :, 0] = self.token_ids[sources[rows], length - 1][:, np.newaxis]
        return Candidates(log_probs, token_ids, candidates.attention_weights)
