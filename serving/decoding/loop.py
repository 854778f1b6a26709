"""The one loop that generates token ids."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .beam import Beams
from .greedy import Greedy
from .results import Hypothesis, Prompts


def search(
    step: Callable,
    state: Any,
    start: np.ndarray,
    end_id: int,
    max_lengths: np.ndarray,
    *,
    num_beams: int = 1,
    n_best: int = 1,
    length_penalty: float = 0.0,
    early_stopping: bool | str = "never",
    prompts: Prompts | None = None,
) -> list[list[Hypothesis]]:
    """Find the best targets of each source by beam search.

        score(Y) = sum_t log p(y_t | y_<t) / lp(Y)

    The continuations of a source's beams are ranked. The best K that end with <eos> are
    finished; the best K others continue. A hypothesis also ends at its source's limit. A source
    leaves the batch when it is done; see `early_stopping`.

    With num_beams 1 a source ends with its first <eos>: greedy search.

    Args:
        step: see `serving.decoding`.
        state: state of the first step.
        start: (B, 1) the first step's tokens, such as <bos>; or (B, 1, T).
        end_id: the id of <eos>.
        max_lengths: (B,) the most tokens of a target after the start, with <eos>; more than its
            prompt has.
        num_beams: K, the number of unfinished hypotheses of a source.
        n_best: how many hypotheses of a source to return.
        length_penalty: alpha of GNMT's length penalty; 0: none.
        early_stopping: when a source is done. "never": as soon as no beam can still enter its n
            best; False: as soon as K are finished and the best beam, if it ended now, would not be
            among them; True: as soon as K are finished.
        prompts: `Prompts` with which the targets begin; None for none.

    Returns:
        A list for each source: up to n_best `Hypothesis`, the best first; fewer if fewer were
        found, none if the model gives no finite log-probability.

    Reference: Sutskever et al. 2014, section 3.2, https://arxiv.org/abs/1409.3215
    """
    prompts = prompts or Prompts(len(start) * [()])
    results: Greedy | Beams
    if num_beams == 1:
        results = Greedy(end_id, max_lengths, prompts, length_penalty)
    else:
        results = Beams(
            end_id, max_lengths, prompts, length_penalty, num_beams, n_best, early_stopping
        )
    for _ in steps(step, state, start, results):
        pass
    return results.finished()


def steps(
    step: Callable,
    state: Any,
    start: np.ndarray,
    results: Greedy | Beams,
    beam_index: np.ndarray | None = None,
) -> Iterator[Greedy | Beams]:
    """Yield `found` after each step, until it follows no source any more.

    Args:
        step, state, start: as for `search`.
        results: a `Greedy` or `Beams`.
        beam_index: (B, 1) the row of the state with which each source begins; None: its own.
    """
    token_ids = start
    if beam_index is None:
        beam_index = np.arange(len(start))[:, np.newaxis]
    for length in itertools.count(1):
        if not len(token_ids):
            return
        candidates, state = step(token_ids, beam_index, results.num_candidates, state)
        token_ids, beam_index = results.extend(candidates, length)
        yield results
