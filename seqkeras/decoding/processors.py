"""Processors of logits before a token is chosen, for greedy search, beam search and sampling.

    processor(logits, prefix) -> logits

`logits` are (B, K, V) float32, `prefix` is a `Prefix`. Any such function will do. A token that may
not be chosen gets -inf. Processors work in the order in which they are given; the order of Hugging
Face's `generate` is RepetitionPenalty, BannedTokens, MinLength, ForcedToken, and then, when it
samples, Temperature, TopK, TopP. Lengths and positions count all tokens of the result: a prompt's
too, `<eos>` too, `<bos>` (the `start_id`) not.

It leaves out phrases (banned or forced runs of several tokens) and n-gram blocking.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from keras import ops

from seqkeras.decoding.checks import require

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Prefix:
    """The tokens chosen so far.

    Args:
        token_ids: (B, K, T) int32, the first `length` of them chosen, zero after those.
        length: a number, the same for all rows.
        prompt_lengths: (B,) int32; zero without a prompt.

    Example:
        >>> import numpy as np
        >>> from seqkeras.decoding import Prefix
        >>> prefix = Prefix(np.array([[[5, 7, 0, 0]]]), length=2, prompt_lengths=np.array([1]))
        >>> prefix.after_prompt
        array([ True])
    """

    token_ids: Tensor
    length: Tensor
    prompt_lengths: Tensor

    @property
    def after_prompt(self) -> Tensor:
        """(B,) booleans: the next token is no longer the prompt's."""
        return self.length >= self.prompt_lengths


@dataclasses.dataclass(frozen=True)
class Temperature:
    """Logits divided by the temperature: below 1 the distribution is sharper, above 1 flatter.

        p_i = exp(x_i / T) / sum_j exp(x_j / T)

    Args:
        temperature: T, above 0.

    Call arguments:
        logits: (B, K, V) float32.
        prefix: the `Prefix`.

    Returns:
        (B, K, V) logits.

    Raises:
        ValueError: if the temperature is not above 0 and finite.

    Reference: Ackley et al. 1985, https://doi.org/10.1207/s15516709cog0901_7

    Example:
        >>> import numpy as np
        >>> from seqkeras.decoding import Temperature
        >>> Temperature(0.5)(np.array([[[1.0, 2.0, 4.0]]]), prefix=None)
        array([[[2., 4., 8.]]])
    """

    temperature: float

    def __post_init__(self) -> None:
        holds = 0 < self.temperature < float("inf")
        demand = "temperature must be above 0 and finite"
        require("Temperature", (holds, f"{demand}; received {self.temperature}"))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        return logits / self.temperature


@dataclasses.dataclass(frozen=True)
class TopK:
    """Keep the k most probable tokens, and those as probable as the k-th.

    Args:
        k: at least 1; a k above the vocabulary's size keeps all.

    Call arguments:
        logits: (B, K, V) float32.
        prefix: the `Prefix`.

    Returns:
        (B, K, V) logits, -inf where a token is not kept.

    Raises:
        ValueError: if k is less than 1.

    Reference: Fan et al. 2018, section 5.4, https://arxiv.org/abs/1805.04833

    Example:
        >>> from keras import ops
        >>> from seqkeras.decoding import TopK
        >>> kept = TopK(2)(ops.convert_to_tensor([[[1.0, 3.0, 2.0, 3.0]]]), prefix=None)
        >>> ops.convert_to_numpy(kept).tolist()
        [[[-inf, 3.0, -inf, 3.0]]]
    """

    k: int

    def __post_init__(self) -> None:
        require("TopK", (self.k >= 1, f"k must be at least 1; received {self.k}"))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        best, _ = ops.top_k(logits, min(self.k, logits.shape[-1]))
        return ops.where(logits >= best[..., -1:], logits, -np.inf)


@dataclasses.dataclass(frozen=True)
class TopP:
    """Top-p (nucleus): the fewest most probable tokens whose total probability reaches p stay.

        min |N|  such that  sum over N of p(y) >= p

    Tokens as probable as the last one in N stay too.

    Args:
        p: above 0, at most 1, which keeps all.

    Call arguments:
        logits: (B, K, V) float32.
        prefix: the `Prefix`.

    Returns:
        (B, K, V) logits, -inf outside of the nucleus.

    Raises:
        ValueError: if p is out of that range.

    Reference: Holtzman et al. 2020, section 3.1, https://arxiv.org/abs/1904.09751

    Example:
        >>> from keras import ops
        >>> from seqkeras.decoding import TopP
        >>> log_probs = ops.log(ops.convert_to_tensor([[[0.5, 0.3, 0.15, 0.05]]]))
        >>> kept = TopP(0.75)(log_probs, prefix=None)
        >>> ops.convert_to_numpy(kept > -float("inf")).tolist()
        [[[True, True, False, False]]]
    """

    p: float

    def __post_init__(self) -> None:
        demand = f"p must be above 0 and at most 1; received {self.p}"
        require("TopP", (0 < self.p <= 1, demand))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        if self.p == 1:  # all of them, even where a sum is rounded up to 1
            return logits
        return nucleus(logits, self.p)


def nucleus(logits: Tensor, p: float | Tensor) -> Tensor:
    """Return logits, -inf outside the nucleus of `TopP`; p: a number, or one for each row, (...,
    1)."""
    ascending = ops.sort(logits, axis=-1)  # from the tail, whose sum is rounded less
    tail = ops.cumsum(ops.softmax(ascending), axis=-1)
    inside = ops.where(tail > 1 - p, ascending, ascending[..., -1:])
    least = ops.min(inside, axis=-1, keepdims=True)
    return ops.where(logits >= least, logits, -np.inf)


@dataclasses.dataclass(frozen=True)
class RepetitionPenalty:
    """Make tokens less probable that the result already has.

        x_i / theta  if x_i > 0,  x_i theta  if not,  for every i in the prefix

    Notation: the paper only divides, which rewards repetition where a logit is negative; like its
        code and all later ones, we multiply negative logits.

    Args:
        theta: above 0; above 1 discourages, below 1 encourages repetition.

    Call arguments:
        logits: (B, K, V) float32, x.
        prefix: the `Prefix`, whose tokens count.

    Returns:
        (B, K, V) logits.

    Raises:
        ValueError: if theta is not above 0 and finite.

    Reference: Keskar et al. 2019, section 4.1, https://arxiv.org/abs/1909.05858

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import Prefix, RepetitionPenalty
        >>> prefix = Prefix(np.array([[[0, 2]]], "int32"), length=2, prompt_lengths=np.array([0]))
        >>> logits = np.array([[[4.0, 4.0, -1.0, -1.0]]], "float32")
        >>> ops.convert_to_numpy(RepetitionPenalty(2.0)(logits, prefix)).tolist()
        [[[2.0, 4.0, -2.0, -1.0]]]
    """

    theta: float

    def __post_init__(self) -> None:
        demand = f"theta must be above 0 and finite; received {self.theta}"
        require("RepetitionPenalty", (0 < self.theta < float("inf"), demand))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        penalised = ops.where(logits > 0, logits / self.theta, logits * self.theta)
        return ops.where(_seen(logits, prefix), penalised, logits)


@dataclasses.dataclass(frozen=True)
class BannedTokens:
    """Ban tokens.

    Args:
        token_ids: the ids that no result may hold, an iterable of integers.

    Call arguments:
        logits: (B, K, V) float32.
        prefix: the `Prefix`.

    Returns:
        (B, K, V) logits, -inf for banned tokens.

    Raises:
        ValueError: when it is called, if an id is not in the vocabulary, or all of it is banned.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import BannedTokens
        >>> logits = np.array([[[1.0, 2.0, 3.0]]], "float32")
        >>> ops.convert_to_numpy(BannedTokens([2])(logits, prefix=None)).tolist()
        [[[1.0, 2.0, -inf]]]
    """

    token_ids: tuple

    def __post_init__(self) -> None:
        object.__setattr__(self, "token_ids", tuple(self.token_ids))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        vocab_size = logits.shape[-1]
        banned = np.isin(np.arange(vocab_size), self.token_ids)
        require(
            "BannedTokens",
            _inside("token_ids", self.token_ids, vocab_size),
            (not banned.all(), "token_ids must leave one token; received all of them"),
        )
        return ops.where(ops.convert_to_tensor(banned), -np.inf, logits)


@dataclasses.dataclass(frozen=True)
class MinLength:
    """Ban `<eos>` until the result has the least length.

    Args:
        min_length: the shortest result, `<eos>` included.
        end_id: the id of `<eos>`.

    Call arguments:
        logits: (B, K, V) float32.
        prefix: the `Prefix`, whose length counts.

    Returns:
        (B, K, V) logits, -inf for `<eos>` where it would come too early.

    Raises:
        ValueError: if min_length is negative; when it is called, if end_id is not in the
            vocabulary.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import MinLength, Prefix
        >>> prefix = Prefix(np.array([[[5, 0, 0]]]), length=1, prompt_lengths=np.array([0]))
        >>> logits = np.array([[[1.0, 2.0, 3.0]]], "float32")
        >>> ops.convert_to_numpy(MinLength(3, end_id=2)(logits, prefix)).tolist()
        [[[1.0, 2.0, -inf]]]
    """

    min_length: int
    end_id: int

    def __post_init__(self) -> None:
        demand = f"min_length must not be negative; received {self.min_length}"
        require("MinLength", (self.min_length >= 0, demand))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        require("MinLength", _inside("end_id", self.end_id, logits.shape[-1]))
        is_end = ops.arange(logits.shape[-1], dtype="int32") == self.end_id
        too_early = prefix.length + 1 < self.min_length
        return ops.where(ops.logical_and(is_end, too_early), -np.inf, logits)


@dataclasses.dataclass(frozen=True)
class ForcedToken:
    """Force a token at a position: a language code at the start, `<eos>` at `max_length - 1`.

    Args:
        token_id: the token.
        position: its place in the result, from 0.

    Call arguments:
        logits: (B, K, V) float32.
        prefix: the `Prefix`, whose length is the position of the next token.

    Returns:
        (B, K, V) logits; at the position 0 for the token and -inf for all others.

    Raises:
        ValueError: if the position is negative; when it is called, if the token is not in the
            vocabulary.

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import ForcedToken, Prefix
        >>> start = Prefix(np.zeros((1, 1, 5), "int32"), length=0, prompt_lengths=np.array([0]))
        >>> logits = np.array([[[1.0, 2.0, 3.0]]], "float32")
        >>> ops.convert_to_numpy(ForcedToken(1, position=0)(logits, start)).tolist()
        [[[-inf, 0.0, -inf]]]
    """

    token_id: int
    position: int

    def __post_init__(self) -> None:
        demand = f"position must not be negative; received {self.position}"
        require("ForcedToken", (self.position >= 0, demand))

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        vocab_size = logits.shape[-1]
        require("ForcedToken", _inside("token_id", self.token_id, vocab_size))
        return ops.where(prefix.length == self.position, _only(self.token_id, vocab_size), logits)


@dataclasses.dataclass(frozen=True, eq=False)
class Prompt:
    """Force the tokens with which each row begins.

    Args:
        token_ids: (B, P) integers, padded on the right.
        lengths: (B,) integers.
    """

    token_ids: Tensor
    lengths: Tensor

    def __call__(self, logits: Tensor, prefix: Prefix) -> Tensor:
        last = ops.shape(self.token_ids)[1] - 1
        token = ops.take(self.token_ids, ops.minimum(prefix.length, last), axis=1)  # (B,)
        forced = _only(token[:, None, None], logits.shape[-1])  # (B, 1, V)
        return ops.where(prefix.after_prompt[:, None, None], logits, forced)


def _inside(name, token_ids, vocab_size):
    """Return a demand on token ids."""
    ids = np.asarray(token_ids, "int64")
    demand = f"{name} must be from 0 to {vocab_size - 1}; received {token_ids}"
    return ((ids >= 0) & (ids < vocab_size)).all(), demand


def _only(token_id, vocab_size):
    """Return logits that leave one token."""
    return ops.where(ops.arange(vocab_size, dtype="int32") == token_id, 0.0, -np.inf)


def _seen(logits, prefix):
    """Return (B, K, V) booleans: the token is in the prefix."""
    batch_size, num_beams, max_length = ops.shape(prefix.token_ids)
    vocab_size = logits.shape[-1]
    there = ops.cast(ops.arange(max_length, dtype="int32") < prefix.length, "int32")  # (T,)
    rows = ops.reshape(prefix.token_ids, (-1, max_length))  # (B K, T)
    places = rows + vocab_size * ops.arange(batch_size * num_beams, dtype="int32")[:, None]
    counts = ops.segment_sum(
        ops.reshape(there + ops.zeros_like(rows), (-1,)),
        ops.reshape(places, (-1,)),
        num_segments=batch_size * num_beams * vocab_size,
    )
    return ops.reshape(counts, (-1, num_beams, vocab_size)) > 0
