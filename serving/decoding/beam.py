"""K sequences for each source, extended by the best continuations of all of them."""

import numpy as np

from .results import Candidates, Hypothesis, Prompts, length_divisor


class Beams:
    """K beams a source, extended by the best continuations of all of them.

    A beam's total never rises, and lp is monotone, so the score of a beam of t tokens is at most

        total / max(lp(t + 1), lp(limit))

    With early_stopping "never" a source is done when this bound excludes all beams from the n best.

    Args:
        end_id, max_lengths, length_penalty, num_beams, n_best, early_stopping: as for
            `serving.decoding.search`.
        prompts: `Prompts`.

    Attributes:
        sources: (B,) indices of the sources still in the batch.
    """

    def __init__(
        self,
        end_id: int,
        max_lengths: np.ndarray,
        prompts: Prompts,
        length_penalty: float,
        num_beams: int,
        n_best: int,
        early_stopping: bool | str = "never",
    ):
        self.end_id, self.max_lengths, self.prompts = end_id, max_lengths, prompts
        self.alpha = length_penalty
        self.num_beams, self.n_best, self.early_stopping = num_beams, n_best, early_stopping
        self.num_candidates = num_beams + 1  # so that K continue when one ends
        num_ends = n_best if early_stopping == "never" else num_beams
        self.ends = _Finished(len(max_lengths), num_ends, end_id)
        self.history = []
        self.sources = np.arange(len(max_lengths))
        self.totals = np.zeros((len(max_lengths), 1))  # (B, K) log-probability so far

    def extend(self, candidates: Candidates, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Extend the beams by a token; return the (B, K) tokens and rows of those that continue."""
        candidates = self.prompts.force(candidates, self.sources, length)
        totals, token_ids, beam_index = _best_continuations(
            self.totals, candidates, 2 * self.num_beams
        )
        generated = length - self.prompts.lengths[self.sources]  # (B,)
        ended = (token_ids == self.end_id) & (generated > 0)[:, np.newaxis]
        ended |= (self.max_lengths[self.sources] == length)[:, np.newaxis]
        if ended.any():
            scores = np.where(ended, totals, -np.inf)
            scores /= length_divisor(np.maximum(generated, 0), self.alpha)[:, np.newaxis]
            best = np.s_[:, : self.num_beams]
            self.ends.add(self.sources, length, scores[best], token_ids[best], beam_index[best])
            totals = np.where(ended, -np.inf, totals)
        going = np.argsort(ended, axis=1, kind="stable")[:, : self.num_beams]  # the best K
        totals = np.take_along_axis(totals, going, axis=1)
        stay = self._bound(totals[:, 0], generated) > self.ends.scores[self.sources, -1]
        self.sources, self.totals, going = self.sources[stay], totals[stay], going[stay]
        token_ids = np.take_along_axis(token_ids[stay], going, axis=1)
        beam_index = np.take_along_axis(beam_index[stay], going, axis=1)
        self.history.append((token_ids, beam_index, _rows(candidates.attention_weights)))
        return token_ids, beam_index

    def _bound(self, totals, generated):
        """Return (B,) the score that the worst finished hypothesis of a source must reach to end
        it."""
        generated = np.maximum(generated, 0)
        if self.early_stopping == "never":
            longest = self.max_lengths[self.sources] - self.prompts.lengths[self.sources]
            return totals / np.maximum(
                length_divisor(generated + 1, self.alpha), length_divisor(longest, self.alpha)
            )
        if self.early_stopping:
            done = self.ends.scores[self.sources, -1] > -np.inf
            return np.where(done, -np.inf, totals)
        return totals / length_divisor(generated, self.alpha)

    def finished(self) -> list[list[Hypothesis]]:
        """Return for each source the list of its `Hypothesis`, the best first."""
        return [results[: self.n_best] for results in self.ends.hypotheses(self.history)]


def _best_continuations(totals, candidates, count):
    """Return totals, token ids and beam rows, each (B, up to `count`), the best first."""
    batch_size, beams, width = candidates.token_ids.shape
    totals = (totals[:, :, np.newaxis] + candidates.log_probs).reshape(batch_size, -1)
    order = np.argsort(-totals, axis=1, kind="stable")[:, :count]
    source = _each(order)
    token_ids = candidates.token_ids.reshape(batch_size, -1)
    return totals[source, order], token_ids[source, order], order // width + beams * source


def _each(rows):
    """Return (B, 1) row indices, to index together with (B, n) columns."""
    return np.arange(len(rows))[:, np.newaxis]


def _rows(attention_weights):
    """Return None or the (B, K, ...) weights as (B * K, ...), in the order of `beam_index`."""
    if attention_weights is None:
        return None
    return attention_weights.reshape(-1, *attention_weights.shape[2:])


class _Finished:
    """The n best finished hypotheses of each source so far.

    A hypothesis is its score, its length, its last token and the row of its beam: (sources, n)
    arrays, the best first; a score of -inf marks a free place.
    """

    def __init__(self, batch_size, n_best, end_id):
        self.end_id = end_id
        self.scores = np.full((batch_size, n_best), -np.inf)
        self.lengths, self.last, self.rows = np.zeros((3, batch_size, n_best), dtype=np.int64)

    def add(self, sources, length, scores, token_ids, beam_index):
        """Add the hypotheses that end with `length` tokens; a score of -inf adds none."""
        scores = np.concatenate([self.scores[sources], scores], axis=1)
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.scores.shape[1]]
        self.scores[sources] = scores[_each(best), best]
        lengths = np.full_like(token_ids, length)
        for ends, new in ((self.lengths, lengths), (self.last, token_ids), (self.rows, beam_index)):
            ends[sources] = np.concatenate([ends[sources], new], axis=1)[_each(best), best]

    def hypotheses(self, history):
        """Return for each source the list of its `Hypothesis`, the best first."""
        token_ids, weights = self._trace(history)
        results = [[] for _ in self.scores]
        for row, (source, rank) in enumerate(np.ndindex(self.scores.shape)):
            if self.scores[source, rank] == -np.inf:
                continue
            ended_by_eos = self.last[source, rank] == self.end_id
            length = self.lengths[source, rank] - ended_by_eos
            results[source].append(
                Hypothesis(
                    token_ids=token_ids[row, :length].tolist(),
                    score=float(self.scores[source, rank]),
                    attention_weights=None if weights is None else weights[row, :length],
                    ended=bool(ended_by_eos),
                )
            )
        return results

    def _trace(self, history):
        """Follow all H hypotheses back to their first token in parallel.

        Args:
            history: for each step the (B, K) tokens chosen, the (B, K) rows of the beams that they
                continue, and None or the (rows, ..., S) weights with which those beams attended.

        Returns:
            (H, T) token ids, and None or (H, T, ..., S) attention weights.
        """
        lengths, last, rows = self.lengths.ravel(), self.last.ravel(), self.rows.flatten()
        token_ids = np.zeros((lengths.size, len(history)), dtype=np.int64)
        weights = None
        if history and history[0][2] is not None:
            first = history[0][2]
            weights = np.zeros((*token_ids.shape, *first.shape[1:]), dtype=first.dtype)
        for t, (tokens, parents, attention) in reversed(list(enumerate(history))):
            ends, goes_on = lengths == t + 1, lengths > t + 1
            token_ids[ends, t] = last[ends]
            token_ids[goes_on, t] = tokens.ravel()[rows[goes_on]]
            rows[goes_on] = parents.ravel()[rows[goes_on]]
            if weights is not None:
                there = ends | goes_on
                weights[there, t] = attention[rows[there]]
        return token_ids, weights
