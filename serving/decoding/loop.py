"""The one loop that generates token ids."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .allowed import MostProbableAllowed
from .beam import Beams
from .choosing import FromLogits
from .greedy import Greedy
from .results import BEST, Candidates, Prompts


def results_of(
    end_id: int,
    max_lengths: np.ndarray,
    prompts: Prompts,
    *,
    num_beams: int = 1,
    n_best: int = 1,
    length_penalty: float = 0.0,
    early_stopping: bool | str = "never",
    stops: Callable[[int, list[int]], bool] | None = None,
) -> Greedy | Beams:
    """Return the results, none yet, of a search for the best targets of each source.

        score(Y) = sum_t log p(y_t | y_<t) / lp(Y)

    The continuations of a source's beams are ranked. The best K that end with <eos> are
    finished; the best K others continue. A hypothesis also ends at its source's limit. A source
    leaves the batch when it is done; see `early_stopping`.

    With num_beams 1 a source ends with its first <eos>: greedy search.

    Args:
        end_id: the id of <eos>.
        max_lengths: (B,) the most tokens of a target after the start, with <eos>; more than its
            prompt has.
        prompts: `Prompts` with which the targets begin.
        num_beams: K, the number of unfinished hypotheses of a source.
        n_best: how many hypotheses of a source to return.
        length_penalty: alpha of GNMT's length penalty; 0: none.
        early_stopping: when a source is done. "never": as soon as no beam can still enter its n
            best; False: as soon as K are finished and the best beam, if it ended now, would not be
            among them; True: as soon as K are finished.
        stops: of a greedy search, see `Greedy`.

    Returns:
        A `Greedy` or `Beams`. Its `finished()` are a list for each source: up to n_best
        `Hypothesis`, the best first; fewer if fewer were found, none if the model gives no finite
        log-probability.

    Reference: Sutskever et al. 2014, section 3.2, https://arxiv.org/abs/1409.3215
    """
    if num_beams == 1:
        return Greedy(end_id, max_lengths, prompts, length_penalty, stops)
    return Beams(end_id, max_lengths, prompts, length_penalty, num_beams, n_best, early_stopping)


class Search:
    """A search on its way: what it asks of the next step, and what it makes of the answer.

    Args:
        results: a `Greedy` or `Beams`.
        start: (B, 1) the first step's tokens, such as <bos>; or (B, 1, T).
        choose: None, or a `FromLogits` or `MostProbableAllowed`, which chooses the candidates.
        beam_index: (B, 1) the row of the state with which each source begins; None: its own.

    Attributes:
        token_ids, beam_index: what the next step reads, see `serving.decoding`; no rows at the end.
        length: how many steps it has taken.
        error: None, or the error of a step, which ended the search.
    """

    def __init__(
        self,
        results: Greedy | Beams,
        start: np.ndarray,
        choose: FromLogits | MostProbableAllowed | None = None,
        beam_index: np.ndarray | None = None,
    ):
        self.results, self._choose = results, choose
        self.token_ids = start
        self.beam_index = np.arange(len(start))[:, np.newaxis] if beam_index is None else beam_index
        self.length, self.error = 0, None

    @property
    def is_over(self) -> bool:
        """Whether it follows no source any more."""
        return self.error is not None or not len(self.token_ids)

    @property
    def reads(self) -> frozenset[str]:
        """What it reads of a step: `BEST`, `LOGITS`, or both."""
        return _BEST if self._choose is None else self._choose.reads

    @property
    def num_beams(self) -> int:
        """The number of beams of each source, after its first step."""
        return self.results.num_beams

    @property
    def num_candidates(self) -> int:
        """The number of candidates of each beam."""
        return self.results.num_candidates

    def take(self, candidates: Candidates) -> None:
        """Extend the beams by what a step gave."""
        self.length += 1
        if self._choose is not None:
            candidates = self._choose(
                candidates, self.token_ids, self.beam_index, self.num_candidates
            )
        self.token_ids, self.beam_index = self.results.extend(candidates, self.length)


def steps(step: Callable, state: Any, search: Search) -> Iterator[Greedy | Beams]:
    """Yield the results of a search after each step, until it follows no source any more.

    Args:
        step: see `serving.decoding`.
        state: the state of the first step.
        search: a `Search`.
    """
    while not search.is_over:
        candidates, state = step(
            search.token_ids, search.beam_index, search.num_candidates, state, search.reads
        )
        search.take(candidates)
        yield search.results


_BEST = frozenset({BEST})
