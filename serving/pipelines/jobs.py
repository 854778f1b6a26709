"""Answers to inputs, as searches that somebody else may turn."""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..decoding import CHUNK, Candidates, Memory, Search, Size, Together, steps
from ..manifest import NoFiniteNumber
from ..printing import as_size
from .inputs import each_or_error

MOST_FREE = 1 / 3  # of a token budget


@dataclass(frozen=True, eq=False)
class Job:
    """A search that answers some inputs.

    Attributes:
        places: their places among the inputs.
        search: the `serving.decoding.Search`.
        begin: takes a slice of the inputs; runs graphs, and yields after each of them how many
            tokens it read, and the state; the last one is that before the first step.
        answers: takes the numbers of inputs that are done, and returns for each of them the answer
            or None.
        name: the name of an input, for errors.
        size: the `Size` of the search's state.
        length: how many tokens each input reads before its own first token.
        work: what each source takes of a token budget.
        num_samples: how many sources of the search answer each input.
        pieces: of streams, which are answered greedily, the `pieces.Pieces` of each text.
        before: what each stream gives before its first step.
    """

    places: Sequence[int]
    search: Search
    begin: Callable[[slice], Iterator[tuple[int, Any]]]
    answers: Callable[[Sequence[int]], list]
    name: str
    size: Size = Size()
    length: int = 1
    work: int = 1
    num_samples: int = 1
    pieces: Sequence = ()
    before: Sequence[str] = ()

    def results(self, numbers: Sequence[int]) -> list:
        """Return for each of the inputs, which are done, the answer or a `NoFiniteNumber`."""
        return each_or_error(self.answers(numbers), self.name)

    def is_done(self) -> list[bool]:
        """Return for each of the inputs whether its answer is complete."""
        left = {source // self.num_samples for source in self.search.results.sources.tolist()}
        return [number not in left for number in range(len(self.places))]

    def piece(self, number: int) -> str:
        """Return what the last step added to the text of a stream; "" for nothing.

        Args:
            number: which of the inputs.

        Raises:
            NoFiniteNumber: if its log-probability is not finite.
        """
        results: Any = self.search.results
        if not np.isfinite(results.totals[number]):
            raise NoFiniteNumber(self.name)
        text = self.pieces[number]
        read = text.read if number in results.sources else text.rest
        return read(results.generated(number))

    def join(self, together: Together, step: Callable, light: bool = True) -> None:
        """Let the search begin among others; see `Together`."""
        together.begin(self.search, self._parts(step), self.size, light)

    def _parts(self, step):
        """Do the first step for few inputs at a time, of up to `CHUNK` tokens."""
        search, chunks, whole = self.search, [], None
        count = max(CHUNK // self.length, 1)
        for first in range(0, len(self.places), count):
            begun: tuple[int, Any] = 0, None
            for part in self.begin(slice(first, first + count)):
                if begun[0]:
                    yield begun[0], None
                begun = part
            read, state = begun
            sources = slice(first * self.num_samples, (first + count) * self.num_samples)
            token_ids = search.token_ids[sources]
            candidates, state = step(
                token_ids,
                search.beam_index[sources] - first,
                search.num_candidates,
                state,
                search.reads,
            )
            chunks.append(candidates)
            if whole is None:
                whole = state
            else:
                whole.join(state)
            is_last = first + count >= len(self.places)
            yield read + token_ids.size, (Candidates.joined(chunks), whole) if is_last else None

    def alone(self, step: Callable) -> Iterator[Any]:
        """Yield the search's results after each step of its own."""
        [(_, state)] = deque(self.begin(slice(None)), maxlen=1)  # keeps no state but the last one
        return steps(step, state, self.search)

    def streamed(self, step: Callable) -> Generator[str, None, Any]:
        """Yield the pieces of the only stream, by steps of its own; return the answer.

        Raises:
            NoFiniteNumber: as `piece`.
        """
        if self.before[0]:
            yield self.before[0]
        for _ in self.alone(step):
            if piece := self.piece(0):
                yield piece
        [answer] = self.results([0])
        return answer


class Ahead:
    """Inputs of a list that have not begun, those with the least work first.

    Args:
        works: what each takes of a token budget.
        lengths: the tokens of each; of equal work, those with fewer come first.
        sizes: the `Size` of each.
        memory: the `Memory` in which the state of a job must fit, or None.
        may_share: takes two of their places, returns whether a job may answer both.
    """

    def __init__(
        self,
        works: Sequence[int],
        lengths: Sequence[int],
        sizes: Sequence[Size],
        memory: Memory | None,
        may_share: Callable[[int, int], bool] = lambda first, other: True,
    ):
        self._works, self._sizes, self._memory = works, sizes, memory
        self._may_share = may_share
        order = sorted(range(len(works)), key=lambda index: (works[index], lengths[index]))
        self._places = deque(order)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def work(self) -> int:
        """The work of the input that comes next; no other has less."""
        return self._works[self._places[0]]

    def fit(self, token_budget: int) -> bool:
        """Return whether the work of all fits in a budget."""
        return not self or len(self) * self._works[self._places[-1]] <= token_budget

    def take(self, token_budget: int) -> tuple[list[int], Size]:
        """Return the places of those whose work, as one, fits in a budget, at least of one, and the
        `Size` of their state."""
        places = [self._places.popleft()]
        size = self._sizes[places[0]]
        while self._places:
            larger = size.beside(self._sizes[self._places[0]])
            if (
                (len(places) + 1) * self.work > token_budget
                or not self._may_share(places[0], self._places[0])
                or (self._memory is not None and not self._memory.holds(larger))
            ):
                break
            places.append(self._places.popleft())
            size = larger
        return places, size


def answered(
    ahead: Ahead,
    job_of: Callable[[list[int], Size], Job],
    step: Callable,
    token_budget: int,
    memory: Memory | None,
    shares_steps: bool,
) -> list:
    """Return the answer to each input, None where there is none.

    Args:
        ahead: the inputs.
        job_of: takes places of inputs and the `Size` of their state, returns their `Job`.
        step: the step of all jobs.
        token_budget: the most work of inputs that are answered at once.
        memory: see `Together`.
        shares_steps: whether inputs begin as others end; else they are answered batch by batch.
    """
    answers: list = [None] * len(ahead)
    if shares_steps and not ahead.fit(token_budget):
        ended = _together(ahead, job_of, step, token_budget, memory)
    else:
        ended = _apart(ahead, job_of, step, token_budget)
    for job in ended:
        if job.search.error is not None:
            raise job.search.error
        for index, answer in zip(job.places, job.answers(range(len(job.places)))):
            answers[index] = answer
    return answers


def _apart(ahead, job_of, step, token_budget):
    """Yield each job when it has ended, before the next begins."""
    while ahead:
        job = job_of(*ahead.take(token_budget))
        for _ in job.alone(step):
            pass
        yield job


def _together(ahead, job_of, step, token_budget, memory):
    """Yield each job when it has ended; others begin when enough of the budget is free.

    Each job costs time of its own in every step, its overhead, and what is free costs a share of
    the time that a step takes however few rows there are. The sum is least if jobs begin when

        sqrt(2 overhead / step)   of the budget is free.

    Where that is more than `MOST_FREE`, as for a tiny model, each job goes on alone.
    """
    pace = _Pace(step)
    together, going = Together(pace.step, memory), []
    while ahead or going:
        share = pace.best_share
        if not going and share > MOST_FREE:
            yield from _apart(ahead, job_of, step, token_budget)
            return
        free = token_budget - sum(job.work * len(job.search.token_ids) for job in going)
        enough = share * token_budget if share <= MOST_FREE else math.inf
        while ahead and (not going or free >= max(enough, ahead.work)):
            job = job_of(*ahead.take(free))
            job.join(together, pace.step)
            going.append(job)
            free -= job.work * len(job.search.token_ids)
        pace.turn(together)
        yield from (job for job in going if job.search.is_over)
        going = [job for job in going if not job.search.is_over]


class _Pace:
    """The least time of a step, and the overhead that one job adds to it."""

    def __init__(self, step):
        self._step, self._seconds = step, 0.0
        self._least = self._overhead = math.inf

    def step(self, *arguments):
        begun = time.perf_counter()
        try:
            return self._step(*arguments)
        finally:
            self._seconds = time.perf_counter() - begun
            self._least = min(self._least, self._seconds)

    def turn(self, together):
        """Let searches take a step."""
        begun, count = time.perf_counter(), len(together)
        self._seconds = 0.0  # as long as the turn only reads a part of a prompt
        together.step()
        overhead = time.perf_counter() - begun - self._seconds
        self._overhead = min(self._overhead, overhead / count)

    @property
    def best_share(self):
        """The share of the budget that is best free when jobs begin; 0 before the first step."""
        return 0.0 if self._least == math.inf else math.sqrt(2 * self._overhead / self._least)


def require_memory(size: Size, memory: Memory | None, name: str) -> None:
    """Raise a ValueError if the state of an input, of that name, needs more than all memory."""
    if memory is not None and not memory.holds(size):
        raise ValueError(
            f"{name} may take {as_size(memory.num_bytes(size))} of caches, {size.rows} beams or "
            f"samples of up to {size.tokens} tokens; the limit is {as_size(memory.most)}: ask for "
            "fewer beams, samples or tokens, or shorten it."
        )
