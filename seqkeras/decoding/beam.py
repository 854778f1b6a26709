"""Beam search: the best hypotheses of a search with K beams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from seqkeras.decoding.checks import count, require
from seqkeras.decoding.loop import Search, decode, reorder

if TYPE_CHECKING:
    from seqkeras.tensors import Tensor

NEVER_SEEN = 1e-7  # the least attention that counts, so that one position can not decide alone


def beam(
    step: Callable[..., Any],
    state: Mapping[str, Tensor],
    *,
    start_id: int | Tensor,
    end_id: int,
    max_length: int,
    num_beams: int,
    n_best: int = 1,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    source_mask: Tensor | None = None,
    early_stopping: bool | str = "never",
    **options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the n best hypotheses of every row.

        s(Y) = log P(Y) / lp(Y) + cp(Y)
        lp(Y) = ((5 + |Y|) / 6)^alpha
        cp(Y) = beta sum_i log(min(sum_t a(t, i), 1))

    Notation: |Y| counts the generated tokens, `<eos>` included and a prompt excluded. a(t, i) is
    the attention to source position i at step t; steps of the prompt count too. Each sum over t
    counts as 1e-7 at least.

    The continuations of a row's beams are ranked. The best K that end with `<eos>` or have
    `max_length` tokens are finished and set aside; the best K others continue. Ties go to the
    earlier beam, then to the lower id (PyTorch's `topk` promises no order). One beam
    is greedy search: a row is done with its first hypothesis.

    A row is done, for `early_stopping`

        "never": as soon as no beam can still enter the n best. A total only falls and lp is
            monotone, so a beam of t tokens stays under total / max(lp(t + 1), lp(max_length)), and
            cp under 0: the answer is the one that never stopping would give.
        False: as soon as K are finished and the best beam, if it ended now, would not be among
            them: total / lp(t) is no more than the worst score. With alpha > 0 it may miss.
        True: as soon as K are finished.

    These are Hugging Face's three rules (its lp is |Y|^alpha).

    Args:
        step, state, start_id, max_length, options: see `seqkeras.decoding.decode`; more than one
            beam needs state_entries.
        end_id: the id of `<eos>`.
        num_beams: K.
        n_best: number of hypotheses to return.
        length_penalty: alpha; 0 for none, above 0 for longer ones.
        coverage_penalty: beta; 0 for none.
        source_mask: (B, S) booleans, True = real; needed with a coverage penalty.
        early_stopping: "never", False or True.

    Returns:
        token_ids: (B, n_best, T) int32, the best first, prompt and `<eos>` included and zero after.
        lengths: (B, n_best) int32, prompt and `<eos>` included.
        scores: (B, n_best) float32. Where fewer were found, -inf with length 0 and no tokens.

    Raises:
        ValueError: if num_beams, n_best or max_length is no positive integer, n_best is above
            num_beams, a penalty is not finite, the coverage penalty is negative or has no
            source_mask or no attention weights, or early_stopping is none of the
            three; see also `seqkeras.decoding.decode`.

    Reference: Wu et al. 2016, section 7, equation 14, https://arxiv.org/abs/1609.08144

    Example:
        >>> import numpy as np
        >>> from keras import ops
        >>> from seqkeras.decoding import StateEntry, beam
        >>> probs = np.array([[0.1, 0.5, 0.4], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]])  # from, to
        >>> step = lambda token_ids, state: ((ops.take(np.log(probs), token_ids, axis=0),), state)
        >>> options = {"state_entries": [StateEntry("source", "source", (1,))], "num_beams": 2}
        >>> token_ids, lengths, scores = beam(
        ...     step, {"source": np.zeros((1, 1))}, start_id=0, end_id=0, max_length=4, **options
        ... )
        >>> ops.convert_to_numpy(token_ids).tolist(), ops.convert_to_numpy(ops.exp(scores)).round(2)
        ([[[2, 0, 0, 0]]], array([[0.36]], dtype=float32))
    """
    search = beam_search(
        num_beams=num_beams,
        n_best=n_best,
        max_length=max_length,
        end_id=end_id,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        source_mask=source_mask,
        early_stopping=early_stopping,
    )
    return decode(step, state, search, start_id=start_id, max_length=max_length, **options)


def beam_search(
    num_beams: int,
    n_best: int,
    max_length: int,
    end_id: int,
    length_penalty: float = 0.0,
    coverage_penalty: float = 0.0,
    source_mask: Tensor | None = None,
    early_stopping: bool | str = "never",
) -> Search:
    """Return the `Search` of `beam`, whose arguments these are."""
    require(
        "beam",
        count("num_beams", num_beams),
        count("n_best", n_best),
        count("max_length", max_length),
    )
    require(
        "beam",
        (n_best <= num_beams, f"n_best must be at most num_beams, {num_beams}; received {n_best}"),
        (np.isfinite(length_penalty), f"length_penalty must be finite; received {length_penalty}"),
        (
            0 <= coverage_penalty < np.inf,
            f"coverage_penalty must not be negative, and finite; received {coverage_penalty}",
        ),
        (
            coverage_penalty == 0 or source_mask is not None,
            "source_mask must be given with a coverage_penalty; received None",
        ),
        (
            early_stopping in (True, False, "never"),
            f'early_stopping must be True, False or "never"; received {early_stopping!r}',
        ),
    )
    coverage = _Coverage(coverage_penalty, source_mask) if coverage_penalty else None
    return _Beams(
        num_beams=num_beams,
        n_best=n_best,
        max_length=max_length,
        end_id=end_id,
        divisors=((5 + np.arange(max_length + 1)) / 6) ** length_penalty,
        coverage=coverage,
        early_stopping=num_beams == 1 or early_stopping,
    )


class _Coverage:
    """GNMT's coverage penalty of the attention that was given so far."""

    def __init__(self, beta: float, source_mask: Tensor):
        self.beta, self.source_mask = beta, ops.cast(source_mask, "bool")

    def begin(self, beams):
        """Return (B, K, S) zeros, from (B, K) ones."""
        return beams[..., None] * ops.cast(self.source_mask, "float32")[:, None]

    def add(self, coverage, others):
        if not others or others[0] is None:
            raise ValueError(
                "beam: coverage_penalty must be 0 if the step returns no attention weights; "
                f"received {self.beta}."
            )
        return coverage + ops.cast(others[0], "float32")

    def penalty(self, coverage):
        """Map (B, K, S) to (B, K)."""
        logs = ops.log(ops.clip(coverage, NEVER_SEEN, 1.0))
        return self.beta * ops.sum(ops.where(self.source_mask[:, None], logs, 0.0), axis=-1)


class _Beams(Search):
    """K beams a row, and the K best hypotheses that have ended.

    `progress` holds of the beams their totals (B, K) and the attention that they gave (B, K, S); of
    the hypotheses, the best first, scores (B, K), -inf where there is none yet, lengths (B, K) and
    token_ids (B, K, T); and of the rows, done (B,).
    """

    def __init__(
        self,
        num_beams: int,
        n_best: int,
        max_length: int,
        end_id: int,
        divisors: Tensor,
        coverage: _Coverage | None,
        early_stopping: bool | str,
    ):
        self.num_beams, self.n_best = num_beams, n_best
        self.max_length, self.end_id = max_length, end_id
        self.divisors = ops.convert_to_tensor(divisors, "float32")
        self.coverage, self.early_stopping = coverage, early_stopping

    def begin(self, batch_size):
        none = ops.zeros((batch_size, self.num_beams), "int32")
        # One beam lives at first; the others repeat it.
        lives = ops.arange(self.num_beams, dtype="int32") == 0
        progress = {
            "totals": ops.where(lives, ops.cast(none, "float32"), -np.inf),
            "scores": ops.cast(none, "float32") - np.inf,
            "lengths": none,
            "token_ids": none[..., None] + 0 * ops.arange(self.max_length, dtype="int32"),
            "done": none[:, 0] > 0,
        }
        if self.coverage:
            progress["attention"] = self.coverage.begin(ops.cast(none, "float32"))
        return progress

    def unfinished(self, progress):
        return ops.logical_not(progress["done"])

    def extend(self, log_probs, others, prefix, progress):
        if self.coverage:
            progress = progress | {"attention": self.coverage.add(progress["attention"], others)}
        totals, token_ids, beam_index = self._continuations(log_probs, progress["totals"])
        ends = ops.logical_and(token_ids == self.end_id, prefix.after_prompt[:, None])
        ends = ops.logical_or(ends, prefix.length + 1 == self.max_length)
        best = slice(self.num_beams)
        progress = self._finish(
            ops.where(ends, totals, -np.inf)[:, best],
            token_ids[:, best],
            beam_index[:, best],
            prefix,
            progress,
        )
        totals, going = ops.top_k(ops.where(ends, -np.inf, totals), self.num_beams)
        token_ids = ops.take_along_axis(token_ids, going, axis=1)
        beam_index = ops.take_along_axis(beam_index, going, axis=1)
        progress = progress | {"totals": totals}
        if self.coverage:
            progress = progress | {"attention": reorder(progress["attention"], beam_index)}
        return token_ids, beam_index, progress | {"done": self._done(prefix, progress)}

    def _continuations(self, log_probs, totals):
        """Return totals, tokens and beams, each (B, 2 K), the best first.

        At most K of 2 K continuations end with `<eos>`, so K remain. The best of all beams are
        among the best 2 K of each.
        """
        count = min(2 * self.num_beams, log_probs.shape[-1])
        log_probs = ops.where(ops.isnan(log_probs), -np.inf, log_probs)
        log_probs, token_ids = ops.top_k(log_probs, count)  # (B, K, 2 K)
        totals = ops.reshape(totals[..., None] + log_probs, (-1, self.num_beams * count))
        totals, index = ops.top_k(totals, 2 * self.num_beams)
        index = ops.cast(index, "int32")
        token_ids = ops.reshape(ops.cast(token_ids, "int32"), (-1, self.num_beams * count))
        return totals, ops.take_along_axis(token_ids, index, axis=1), index // count

    def _finish(self, totals, token_ids, beam_index, prefix, progress):
        """Return the results with the (B, K) continuations that end now; a total of -inf does not
        end."""
        scores = totals / self._divisor(prefix.length + 1, prefix)[:, None]
        if self.coverage:
            penalty = self.coverage.penalty(progress["attention"])
            scores = scores + ops.take_along_axis(penalty, beam_index, axis=1)
        scores = ops.where(progress["done"][:, None], -np.inf, scores)
        is_last = ops.arange(self.max_length, dtype="int32") == prefix.length
        ended = {
            "scores": scores,
            "lengths": ops.zeros_like(token_ids) + ops.cast(prefix.length + 1, "int32"),
            "token_ids": ops.where(
                is_last, token_ids[..., None], reorder(prefix.token_ids, beam_index)
            ),
        }
        both = {name: ops.concatenate([progress[name], ended[name]], axis=1) for name in ended}
        scores, best = ops.top_k(both["scores"], self.num_beams)
        best_ends = {name: reorder(both[name], best) for name in ("lengths", "token_ids")}
        return progress | best_ends | {"scores": scores}

    def _done(self, prefix, progress):
        """Return (B,) booleans: the rule of early stopping."""
        total, worst = progress["totals"][:, 0], progress["scores"][:, -1]
        length = prefix.length + 1
        if self.early_stopping == "never":
            worst = progress["scores"][:, self.n_best - 1]
            limit = total / ops.maximum(
                self._divisor(length + 1, prefix), self._divisor(self.max_length, prefix)
            )
        elif self.early_stopping:
            limit = ops.where(worst > -np.inf, -np.inf, total)
        else:
            limit = total / self._divisor(length, prefix)
        return ops.logical_or(progress["done"], ops.logical_not(limit > worst))

    def _divisor(self, length, prefix):
        """Return (B,) lp of a result so long, its prompt not counted."""
        generated = ops.clip(length - prefix.prompt_lengths, 0, self.max_length)
        return ops.take(self.divisors, generated, axis=0)

    def results(self, token_ids, progress):
        best = slice(self.n_best)
        is_found = progress["scores"] > -np.inf
        return (
            ops.where(is_found[..., None], progress["token_ids"], 0)[:, best],
            ops.where(is_found, progress["lengths"], 0)[:, best],
            progress["scores"][:, best],
        )
