"""The decoding loop: beam search, and greedy search as its beam of one, over any step.

Knows no model and no text. A model comes as a function of one step,

    step(token_ids, beam_index, k, state) -> (candidates, state)

    token_ids: (B, K) int64, the last token of each beam of each source; <bos> at first.
    beam_index: (B, K) int64, the row of the previous state that each beam continues, its rows
        being counted through, source by source: row = source * previous K + beam. Reordering
        beams, widening one beam to K and dropping finished sources are all this one gather.
    k: how many candidates to return for each beam; a step may return fewer.
    state: whatever the previous step returned; at first, one beam for each source.
    candidates: `Candidates`, the best continuations of each beam, the best first.

Shape letters here: B sources still in the batch, K beams, C candidates, T target, S source length.
Does not sample, and does not penalise or ban tokens.
"""

from dataclasses import dataclass

import numpy as np

from .text import BOS, EOS, PAD


@dataclass(frozen=True, eq=False)
class Candidates:
    """One step's continuations of each beam.

    Attributes:
        log_probs: (B, K, C), descending.
        token_ids: (B, K, C).
        attention_weights: (B, K, S), or None if they were not asked for.
    """

    log_probs: np.ndarray
    token_ids: np.ndarray
    attention_weights: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A finished target: its ids without <eos>, its score, and None or (T, S) attention weights."""

    token_ids: list[int]
    score: float
    attention_weights: np.ndarray | None


def length_penalty(length, alpha):
    """GNMT's divisor of a log-probability, which makes up for the length of the target.

        lp(Y) = ((5 + |Y|) / 6)^alpha

    Notation: |Y| counts the generated tokens, <eos> among them.

    Reference: Wu et al. 2016, section 7, equation 14, https://arxiv.org/abs/1609.08144
    """
    return ((5 + length) / 6) ** alpha


def search(step, state, batch_size, target_length, beam_size=1, n_best=1, alpha=0.0):
    """Find the best targets of each source by beam search.

        score(Y) = sum_t log p(y_t | y_<t) / lp(Y)

    Of all continuations of a source's beams, those among the best K that end with <eos> are
    finished, and the best K others go on. A hypothesis also ends when it has `target_length`
    tokens. A source is done, and leaves the batch, as soon as no beam can still enter its n best:
    a total only falls and lp is monotone, so a beam of t tokens and this total stays under

        total / max(lp(t + 1), lp(target_length))

    With beam_size 1 a source ends with its first <eos>: greedy search, which needs none of this.

    Args:
        step: see above.
        state: of the first step.
        batch_size: number of sources.
        target_length: the most tokens a target may have, <eos> among them.
        beam_size: K, how many unfinished hypotheses of a source are followed.
        n_best: how many hypotheses of a source to return.
        alpha: of the length penalty; 0: none.

    Returns:
        A list for each source: up to n_best `Hypothesis`, the best first; fewer if fewer were
        found, none if the model gives no finite log-probability.

    Reference: Sutskever et al. 2014, section 3.2, https://arxiv.org/abs/1409.3215
    """
    hypotheses = (
        _Greedy(batch_size, target_length, alpha)
        if beam_size == 1
        else _Beams(batch_size, target_length, alpha, beam_size, n_best)
    )
    token_ids = np.full((batch_size, 1), BOS)  # (B, K)
    beam_index = np.arange(batch_size)[:, np.newaxis]  # (B, K)
    for length in range(1, target_length + 1):
        if not len(token_ids):
            break
        candidates, state = step(token_ids, beam_index, hypotheses.num_candidates, state)
        token_ids, beam_index = hypotheses.extend(candidates, length)
    return hypotheses.finished()


class _Greedy:
    """One beam a source, extended by its best candidate."""

    num_candidates = 1

    def __init__(self, batch_size, target_length, alpha):
        self.alpha = alpha
        self.sources = np.arange(batch_size)  # (B,) who is still in the batch
        self.token_ids = np.full((batch_size, target_length), PAD)
        self.lengths = np.zeros(batch_size, dtype=np.int64)
        self.totals = np.zeros(batch_size)  # log-probability so far
        self.attention_weights = []  # for each step the sources and their weights, or None

    def extend(self, candidates, length):
        """Add a token to every source; return the (B, 1) tokens and rows of those that go on."""
        sources, token_ids = self.sources, candidates.token_ids[:, :, 0]
        self.token_ids[sources, length - 1] = token_ids[:, 0]
        self.totals[sources] += candidates.log_probs[:, 0, 0]
        self.lengths[sources] = length
        self.attention_weights.append((sources, candidates.attention_weights))
        going = np.flatnonzero(token_ids[:, 0] != EOS)
        if going.size < sources.size:
            self.sources, token_ids = sources[going], token_ids[going]
        return token_ids, going[:, np.newaxis]

    def finished(self):
        """Return for each source the list of its one `Hypothesis`."""
        scores = self.totals / length_penalty(self.lengths, self.alpha)
        weights = self._weights()
        ended_by_eos = self.token_ids[np.arange(len(scores)), self.lengths - 1] == EOS
        kept = self.lengths - ended_by_eos
        return [
            [
                Hypothesis(
                    token_ids=self.token_ids[source, : kept[source]].tolist(),
                    score=float(scores[source]),
                    attention_weights=None if weights is None else weights[source, : kept[source]],
                )
            ]
            if np.isfinite(scores[source])
            else []
            for source in range(len(scores))
        ]

    def _weights(self):
        """Return None or the (sources, T, S) attention weights."""
        first = self.attention_weights[0][1] if self.attention_weights else None
        if first is None:
            return None
        shape = (*self.token_ids.shape, first.shape[-1])
        weights = np.zeros(shape, dtype=first.dtype)
        for t, (sources, attention) in enumerate(self.attention_weights):
            weights[sources, t] = attention[:, 0]
        return weights


class _Beams:
    """K beams a source, extended by the best continuations of all of them."""

    def __init__(self, batch_size, target_length, alpha, beam_size, n_best):
        self.target_length, self.alpha, self.beam_size = target_length, alpha, beam_size
        self.num_candidates = beam_size + 1  # so that K go on when one ends
        self.ends = _Finished(batch_size, n_best)
        self.history = []
        self.sources = np.arange(batch_size)  # (B,) who is still in the batch
        self.totals = np.zeros((batch_size, 1))  # (B, K) log-probability so far

    def extend(self, candidates, length):
        """Extend the beams by a token; return the (B, K) tokens and rows of those that go on."""
        totals, token_ids, beam_index = _best_continuations(
            self.totals, candidates, 2 * self.beam_size
        )
        ended = (token_ids == EOS) | (length == self.target_length)
        if ended.any():
            scores = np.where(ended, totals, -np.inf) / length_penalty(length, self.alpha)
            best = np.s_[:, : self.beam_size]
            self.ends.add(self.sources, length, scores[best], token_ids[best], beam_index[best])
            totals = np.where(ended, -np.inf, totals)
        going = np.argsort(ended, axis=1, kind="stable")[:, : self.beam_size]  # the best K
        totals = np.take_along_axis(totals, going, axis=1)
        limit = totals[:, 0] / max(
            length_penalty(n, self.alpha) for n in (length + 1, self.target_length)
        )
        stay = limit > self.ends.scores[self.sources, -1]
        self.sources, self.totals, going = self.sources[stay], totals[stay], going[stay]
        token_ids = np.take_along_axis(token_ids[stay], going, axis=1)
        beam_index = np.take_along_axis(beam_index[stay], going, axis=1)
        self.history.append((token_ids, beam_index, _rows(candidates.attention_weights)))
        return token_ids, beam_index

    def finished(self):
        """Return for each source the list of its `Hypothesis`, the best first."""
        return self.ends.hypotheses(self.history)


def _best_continuations(totals, candidates, count):
    """Return totals, token ids and beam rows, each (B, up to `count`), the best first."""
    batch_size, beams, width = candidates.token_ids.shape
    totals = (totals[:, :, np.newaxis] + candidates.log_probs).reshape(batch_size, -1)
    order = np.argsort(-totals, axis=1, kind="stable")[:, :count]
    source = _each(order)
    token_ids = candidates.token_ids.reshape(batch_size, -1)
    return totals[source, order], token_ids[source, order], order // width + beams * source


def _each(rows):
    """Return (B, 1): the number of each row, to index with beside a (B, n) array of columns."""
    return np.arange(len(rows))[:, np.newaxis]


def _rows(attention_weights):
    """Return None or the (B, K, S) weights as (B * K, S), in the order of `beam_index`."""
    if attention_weights is None:
        return None
    return attention_weights.reshape(-1, attention_weights.shape[-1])


class _Finished:
    """The n best finished hypotheses of each source, as they end.

    A hypothesis is kept as its score, its length, its last token and the row of the beam that it
    ended: (sources, n) arrays, the best first, -inf where there is none yet.
    """

    def __init__(self, batch_size, n_best):
        self.scores = np.full((batch_size, n_best), -np.inf)
        self.lengths, self.last, self.rows = np.zeros((3, batch_size, n_best), dtype=np.int64)

    def add(self, sources, length, scores, token_ids, beam_index):
        """Add the hypotheses of `length` tokens that end now; a score of -inf: it does not."""
        scores = np.concatenate([self.scores[sources], scores], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.scores.shape[1]]
        self.scores[sources] = scores[_each(best), best]
        lengths = np.full_like(token_ids, length)
        for kept, new in ((self.lengths, lengths), (self.last, token_ids), (self.rows, beam_index)):
            kept[sources] = np.concatenate([kept[sources], new], axis=1)[_each(best), best]

    def hypotheses(self, history):
        """Return for each source the list of its `Hypothesis`, the best first."""
        token_ids, weights = self._trace(history)
        found = [[] for _ in self.scores]
        for row, (source, rank) in enumerate(np.ndindex(self.scores.shape)):
            if self.scores[source, rank] == -np.inf:
                continue
            ended_by_eos = self.last[source, rank] == EOS
            kept = self.lengths[source, rank] - ended_by_eos
            found[source].append(
                Hypothesis(
                    token_ids=token_ids[row, :kept].tolist(),
                    score=float(self.scores[source, rank]),
                    attention_weights=None if weights is None else weights[row, :kept],
                )
            )
        return found

    def _trace(self, history):
        """Follow all H hypotheses back to their first token, side by side.

        Args:
            history: for each step the (B, K) tokens chosen, the (B, K) rows of the beams that they
                continue, and None or the (rows, S) weights with which those beams attended.

        Returns:
            (H, T) token ids, and None or (H, T, S) attention weights.
        """
        lengths, last, rows = self.lengths.ravel(), self.last.ravel(), self.rows.flatten()
        token_ids = np.full((lengths.size, len(history)), PAD)
        weights = None
        if history and history[0][2] is not None:
            first = history[0][2]
            weights = np.zeros((*token_ids.shape, first.shape[-1]), dtype=first.dtype)
        for t, (tokens, parents, attention) in reversed(list(enumerate(history))):
            ends, goes_on = lengths == t + 1, lengths > t + 1
            token_ids[ends, t] = last[ends]
            token_ids[goes_on, t] = tokens.ravel()[rows[goes_on]]
            rows[goes_on] = parents.ravel()[rows[goes_on]]
            if weights is not None:
                there = ends | goes_on
                weights[there, t] = attention[rows[there]]
        return token_ids, weights
