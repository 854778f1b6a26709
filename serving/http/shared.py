"""Inputs whose answers are generated together, each joining and leaving between two steps."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..decoding import Together
from ..pipelines.jobs import Job
from ..pipelines.pipeline import Pipeline


def shares(pipeline: Pipeline, options: dict[str, Any]) -> bool:
    """Return whether a pipeline generates answers with these options in steps that others share:
    attention weights are of one length."""
    return getattr(pipeline, "shares_steps", False) and not options.get("attention")


@dataclass(eq=False)
class _Going:
    """A job on its way.

    Attributes:
        job: the job.
        waiting: number among the job's inputs -> the input, of those that wait for their answer.
        work: the most tokens of an answer.
        light: whether they are of light requests.
        began: when.
        told: how many steps of it the streams have told.
        failed: number among the job's inputs -> the error of its stream.
    """

    job: Job
    waiting: dict[int, Any]
    work: int
    light: bool
    began: float
    told: int = 0
    failed: dict[int, Exception] = field(default_factory=dict)

    def tell(self):
        """Tell the readers of streams what the last step added."""
        search = self.job.search
        if not self.job.pieces or search.error is not None or self.told == search.length:
            return
        self.told = search.length
        for number, entry in self.waiting.items():
            try:
                piece = self.job.piece(number)
            except Exception as error:
                self.failed[number] = error
            else:
                if piece:
                    entry.tell(piece)

    def take_complete(self):
        """Return the inputs whose answers are complete, which wait no more, and these answers."""
        job, error = self.job, self.job.search.error
        done = job.is_done() if error is None else [True] * len(job.places)
        complete = [number for number in self.waiting if done[number] or number in self.failed]
        answers = dict.fromkeys(complete, error) | self.failed
        try:
            good = [number for number in complete if answers[number] is None]
            answers |= zip(good, job.results(good) if good else ())
        except Exception as failure:
            answers |= dict.fromkeys(good, failure)
        return [self.waiting.pop(number) for number in complete], [*map(answers.get, complete)]


class Shared:
    """The inputs of a worker that are answered together.

    Args:
        max_work: tokens of all answers on their way to light requests; and as many to others.
        max_count: inputs of light requests on their way; and as many of others.
        deliver: takes waiting inputs, their answers or errors, the seconds that it took, and the
            number of inputs that were on their way.
    """

    def __init__(
        self, max_work: int, max_count: int, deliver: Callable[[Sequence, list, float, int], None]
    ):
        self._max_work, self._max_count, self._deliver = max_work, max_count, deliver
        self._together: dict[Pipeline, Together] = {}
        self._going: list[_Going] = []

    def __len__(self) -> int:
        """Return the number of inputs on their way."""
        return sum(len(going.waiting) for going in self._going)

    def room(self, work: int, light: bool) -> int:
        """Return how many more inputs may come, of light requests or others, that take so many
        tokens each."""
        alike = [going for going in self._going if going.light == light]
        taken = sum(going.work * len(going.waiting) for going in alike)
        count = sum(len(going.waiting) for going in alike)
        return max(min((self._max_work - taken) // work, self._max_count - count), not alike)

    def begin(
        self,
        pipeline: Pipeline,
        options: dict[str, Any],
        waiting: Sequence,
        work: int,
        light: bool = True,
    ) -> None:
        """Begin to answer inputs; one that is refused is answered with its error.

        Args:
            pipeline, options: what answers all of them.
            waiting: the inputs, which have a `value`; those of streams `tell` a reader a piece.
            work: the most tokens of an answer.
            light: whether they are of light requests.
        """
        began = time.perf_counter()
        try:
            streams = {"streams": True} if waiting[0].tell else {}
            jobs = pipeline.jobs([entry.value for entry in waiting], **streams, **options)
        except Exception as error:
            if len(waiting) == 1:
                self._deliver(waiting, [error], time.perf_counter() - began, 1)
                return
            for entry in waiting:
                self.begin(pipeline, options, [entry], work, light)
            return
        together = self._together.setdefault(pipeline, Together(pipeline.step, pipeline.memory))
        for job in jobs:
            entries = dict(enumerate(waiting[index] for index in job.places))
            for number, text in enumerate(job.before):
                if text:
                    entries[number].tell(text)
            self._going.append(_Going(job, entries, work, light, began))
            job.join(together, pipeline.step, light)

    def step(self) -> None:
        """Let what is on its way take a step, and deliver what is complete."""
        for together in self._together.values():
            if len(together):
                together.step()
        self._end()

    def drop(self, is_wanted: Callable[[Any], bool]) -> int:
        """Give up those jobs for none of whose inputs a function returns True; return the number of
        their inputs."""
        left = [going for going in self._going if not any(map(is_wanted, going.waiting.values()))]
        self._forget(left)
        return sum(len(going.waiting) for going in left)

    def fail(self, error: Exception) -> None:
        """Answer all inputs on their way with an error."""
        failed, self._going, self._together = self._going, [], {}
        for going in failed:
            entries = [*going.waiting.values()]
            seconds = time.perf_counter() - going.began
            self._deliver(entries, [error] * len(entries), seconds, len(entries))

    def _end(self):
        """Tell and deliver what is complete, and forget jobs and pipelines that are."""
        count = len(self)
        for going in self._going:
            going.tell()
            entries, answers = going.take_complete()
            if entries:
                self._deliver(entries, answers, time.perf_counter() - going.began, count)
        self._forget([going for going in self._going if not going.waiting])

    def _forget(self, jobs):
        for going in jobs:
            for together in self._together.values():
                together.leave(going.job.search)
        self._going = [going for going in self._going if going not in jobs]
        self._together = {
            pipeline: together for pipeline, together in self._together.items() if len(together)
        }
