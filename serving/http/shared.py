"""Inputs whose answers are generated together, each joining and leaving between two steps."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..decoding import Together
from ..pipelines.jobs import Job
from ..pipelines.pipeline import Pipeline

LIGHTER = 16  # times as much work may be on its way as a light input takes


def shares(pipeline: Pipeline, options: dict[str, Any]) -> bool:
    """Return whether a pipeline generates answers with these options in steps that others share:
    attention weights are of one length."""
    return getattr(pipeline, "shares_steps", False) and not options.get("attention")


@dataclass(eq=False)
class _Going:
    """A job on its way.

    Attributes:
        job, waiting: the job, and the inputs that wait for it.
        work: the most tokens of an answer.
        began: when.
        told: how many steps of it a stream has told.
    """

    job: Job
    waiting: Sequence
    work: int
    began: float
    told: int = 0

    def tell(self):
        """Tell the reader of a stream what the last step added."""
        search = self.job.search
        if self.job.pieces is None or search.error is not None or self.told == search.length:
            return
        self.told = search.length
        try:
            piece = self.job.piece()
        except Exception as error:
            search.error = error
        else:
            if piece:
                self.waiting[0].tell(piece)


class Shared:
    """The inputs of a worker that are answered together.

    Args:
        max_work: tokens of all answers on their way; and of the light ones as many again.
        max_count: inputs on their way.
        deliver: takes waiting inputs, their answers or errors, and the seconds that it took.
    """

    def __init__(
        self, max_work: int, max_count: int, deliver: Callable[[Sequence, list, float], None]
    ):
        self._max_work, self._max_count, self._deliver = max_work, max_count, deliver
        self._together: dict[Pipeline, Together] = {}
        self._going: list[_Going] = []

    def __len__(self) -> int:
        """Return the number of inputs on their way."""
        return sum(len(going.waiting) for going in self._going)

    def room(self, work: int) -> int:
        """Return how many more inputs that take so many tokens each may come."""
        if not self._going:
            return max(min(self._max_work // work, self._max_count), 1)
        lightest = self._max_work // LIGHTER
        taken = sum(
            going.work * len(going.waiting)
            for going in self._going
            if work > lightest or going.work <= lightest
        )
        return max(min((self._max_work - taken) // work, self._max_count - len(self)), 0)

    def begin(
        self, pipeline: Pipeline, options: dict[str, Any], waiting: Sequence, work: int
    ) -> None:
        """Begin to answer inputs; one that is refused is answered with its error.

        Args:
            pipeline, options: what answers all of them.
            waiting: the inputs, which have a `value`; those of streams `tell` a reader a piece.
            work: the most tokens of an answer.
        """
        began = time.perf_counter()
        try:
            jobs = self._jobs(pipeline, options, waiting)
        except Exception as error:
            if len(waiting) == 1:
                self._deliver(waiting, [error], time.perf_counter() - began)
                return
            for entry in waiting:
                self.begin(pipeline, options, [entry], work)
            return
        together = self._together.setdefault(pipeline, Together(pipeline.step))
        for job in jobs:
            going = _Going(job, [waiting[place] for place in job.places], work, began)
            try:
                together.begin(job.search, job.begin())
            except Exception as error:
                job.search.error = error
            self._going.append(going)
        self._end()

    def _jobs(self, pipeline, options, waiting):
        """Return the jobs that answer inputs."""
        if waiting[0].tell is None:
            return pipeline.jobs([entry.value for entry in waiting], **options)
        jobs = [pipeline.stream_job(entry.value, **options) for entry in waiting]
        for entry, job in zip(waiting, jobs):
            if job.before:
                entry.tell(job.before)
        return [replace(job, places=[place]) for place, job in enumerate(jobs)]

    def step(self) -> None:
        """Let what is on its way take a step, and deliver what is complete."""
        for together in self._together.values():
            if len(together):
                together.step()
        self._end()

    def drop(self, is_wanted: Callable[[Any], bool]) -> int:
        """Give up those jobs for none of whose inputs a function returns True; return the number of
        their inputs."""
        left = [going for going in self._going if not any(map(is_wanted, going.waiting))]
        for going in left:
            for together in self._together.values():
                together.leave(going.job.search)
        self._going = [going for going in self._going if going not in left]
        return sum(len(going.waiting) for going in left)

    def _end(self):
        """Deliver what is complete, and forget pipelines that answer nothing."""
        for going in self._going:
            going.tell()
        over = [going for going in self._going if going.job.search.is_over]
        self._going = [going for going in self._going if not going.job.search.is_over]
        for going in over:
            for together in self._together.values():
                together.leave(going.job.search)
            try:
                if going.job.search.error is not None:
                    raise going.job.search.error
                answers = going.job.results()
            except Exception as error:
                answers = [error] * len(going.waiting)
            self._deliver(going.waiting, answers, time.perf_counter() - going.began)
        self._together = {
            pipeline: together for pipeline, together in self._together.items() if len(together)
        }
