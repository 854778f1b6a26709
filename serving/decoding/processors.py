"""Processors of logits before a token is chosen, like `seqkeras.decoding.processors`.

    processor(logits, prefix) -> logits

`logits` are (B, K, V), `prefix` is a `Prefix`. A token that may not be chosen gets -inf. Processors
apply in the given order; Hugging Face's is RepetitionPenalty, BannedTokens, MinLength, ForcedToken,
Temperature, TopK, TopP. Unlike Hugging Face's, lengths and positions count generated tokens only,
because the prompts of a batch have different lengths.
"""

from dataclasses import dataclass

import numpy as np

from .choosing import Prefix

MOST_OF_A_NUCLEUS = 512  # tokens; for a larger nucleus, all tokens are sorted


@dataclass(frozen=True)
class Temperature:
    """Logits divided by the temperature T, above 0.

        p_i = exp(x_i / T) / sum_j exp(x_j / T)

    Reference: Ackley et al. 1985, https://doi.org/10.1207/s15516709cog0901_7
    """

    temperature: float

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        return logits / np.float32(self.temperature)


@dataclass(frozen=True)
class TopK:
    """Keep the k most probable tokens, and those as probable as the k-th.

    Reference: Fan et al. 2018, section 5.4, https://arxiv.org/abs/1805.04833
    """

    k: int

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        if self.k >= logits.shape[-1]:
            return logits
        least = np.partition(logits, -self.k, axis=-1)[..., -self.k]
        return _banned(logits, logits < least[..., np.newaxis])


@dataclass(frozen=True)
class TopP:
    """Keep the nucleus: the fewest most probable tokens whose total probability reaches p.

        min |N|  such that  sum over N of p(y) >= p

    Tokens as probable as the last one in N are kept too; p = 1 keeps all.

    Reference: Holtzman et al. 2020, section 3.1, https://arxiv.org/abs/1904.09751
    """

    p: float

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        if self.p == 1:
            return logits
        shifted = logits - np.max(logits, axis=-1, keepdims=True)
        wanted = self.p * np.sum(np.exp(shifted), axis=-1, keepdims=True, dtype=np.float64)
        best = _largest(shifted, MOST_OF_A_NUCLEUS)
        above = np.cumsum(np.exp(best), axis=-1, dtype=np.float64)
        if np.any(above[..., -1:] < wanted):
            best = _largest(shifted, shifted.shape[-1])
            above = np.cumsum(np.exp(best), axis=-1, dtype=np.float64)
        last = np.argmax(above >= wanted, axis=-1)[..., np.newaxis]
        return _banned(logits, shifted < np.take_along_axis(best, last, axis=-1))


@dataclass(frozen=True)
class RepetitionPenalty:
    """Make tokens less probable that the text or its prompt already has.

        x_i / theta  if x_i > 0,  x_i theta  if not,  for every i in the prefix

    Reference: Keskar et al. 2019, section 4.1, https://arxiv.org/abs/1909.05858
    """

    theta: float

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        theta = np.float32(self.theta)
        seen = np.take_along_axis(logits, prefix.token_ids, axis=-1)
        seen = np.where(seen > 0, seen / theta, seen * theta)
        penalised = logits.copy()
        np.put_along_axis(penalised, prefix.token_ids, seen, axis=-1)
        return penalised


@dataclass(frozen=True)
class BannedTokens:
    """Ban tokens."""

    token_ids: tuple

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        logits = logits.copy()
        logits[..., list(self.token_ids)] = -np.inf
        return logits


@dataclass(frozen=True)
class MinLength:
    """Ban <eos> until the text has the least number of tokens, with <eos>."""

    min_length: int
    end_id: int

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        logits = logits.copy()
        logits[prefix.generated + 1 < self.min_length, :, self.end_id] = -np.inf
        return logits


@dataclass(frozen=True)
class ForcedToken:
    """Force a token at a position of the generated text, from 0."""

    token_id: int
    position: int

    def __call__(self, logits: np.ndarray, prefix: Prefix) -> np.ndarray:
        is_forced = prefix.generated == self.position
        logits = logits.copy()
        logits[is_forced] = -np.inf
        logits[is_forced, :, self.token_id] = 0
        return logits


def _largest(values, count):
    """Return the (..., count) largest values, or all if there are fewer, the largest first."""
    if count < values.shape[-1]:
        values = np.partition(values, -count, axis=-1)[..., -count:]
    return np.sort(values, axis=-1)[..., ::-1]


def _banned(logits, places):
    return np.where(places, np.float32(-np.inf), logits)
