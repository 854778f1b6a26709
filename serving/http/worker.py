"""The thread that answers the inputs of a bundle's clients, in batches of what waits."""

import asyncio
import contextlib
import functools
import math
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..answering import answers_or_errors, encoding_options
from ..pipelines.pipeline import Pipeline
from .bounds import Bounds
from .departure import Abandoned, Wanted
from .http_refusal import HttpRefusal
from .metrics import BundleMetrics
from .shared import Shared, shares
from .work import LIGHTER, is_light, work_of

MOST_WRITTEN = 18  # tokens of one character: NFKC writes U+FDFA as 18 characters

AHEAD = 64  # pieces that wait for a slow reader; it gets more of them as one

LONG = 0.1  # seconds that it has taken, at least
PATIENCE = 2  # times its own seconds that the lighter one may wait for the end of the other


@dataclass(frozen=True, eq=False)
class Waiting:
    """An input that waits for its answer, since a time; `tell` takes the pieces of a stream;
    `light`: whether it is of a light request."""

    value: Any
    answer: asyncio.Future
    since: float
    tell: Callable[[str], object] | None = None
    light: bool = True


@dataclass(eq=False)
class Running:
    """A batch that is answered: its work in tokens, when it began, and the seconds in which it gave
    way to others."""

    work: int
    began: float
    given: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds of its own, so far."""
        return time.perf_counter() - self.began - self.given


class Worker:
    """Answers inputs in one thread, since two threads on one pipeline are slower than one.

    Inputs wait in groups of equal options, for the pipeline that was there when they came: another
    one may read other inputs and give other answers. When the thread is free, it takes the group
    that waits longest, up to `max_batch` inputs of it and `max_work` tokens that they may take,
    without waiting for more; the other groups take their turns then. A refused one fails alone. A
    batch that nobody waits for any more ends before the next run of a graph.

    Before a run of a graph, a batch that takes long gives way to one with at most a sixteenth of
    its work that has waited as long as such a batch last took, so that what comes one by one shares
    it, and would wait twice as long again. It gives away half of its time at most.

    What a pipeline generates in steps that others may share is `Shared` instead: an input joins
    what is on its way as soon as there is room, and leaves as soon as it is answered. Inputs of a
    light request share steps with light ones only, which have half of the time, so that no request
    for many answers slows them more. A batch that takes long gives half of its time to these steps
    too.

    Args:
        pipeline: the result of `serving.load`; another one may take its place, for later inputs.
        bounds: the server's `Bounds`.
        metrics: the bundle's `BundleMetrics`.
        wanted: the `Wanted` that the pipeline asks before each run of a graph.
    """

    def __init__(self, pipeline: Pipeline, bounds: Bounds, metrics: BundleMetrics, wanted: Wanted):
        self.pipeline, self._bounds, self._metrics = pipeline, bounds, metrics
        self._wanted = wanted
        # By pipeline and options, oldest first.
        self._groups: dict[tuple[Pipeline, str], tuple[dict, deque[Waiting]]] = {}
        self._lock, self._wakes = threading.Lock(), threading.Semaphore(0)
        self._count, self._idle, self._closed = 0, True, False
        self._running: list[Running] = []  # each gave way to the next
        self._took: dict[int, float] = {}  # binary digits of a batch's work -> its own seconds
        self.streams = 0  # that are open and share steps
        self._shared = Shared(bounds.max_work, bounds.max_batch, self._deliver)
        self._turns = False  # whether they take a step in the time of a batch
        self._thread = threading.Thread(target=self._run, daemon=True, name="seqkeras-worker")
        self._thread.start()

    def add(
        self, values: Sequence, options: dict[str, Any], key: str, pipeline: Pipeline | None = None
    ) -> list[asyncio.Future]:
        """Let inputs wait for their answers; call it in the event loop.

        Args:
            values: the inputs.
            options: options of the pipeline, equal for all.
            key: a string that equal options share.
            pipeline: which answers them; None for the one that is there now.

        Returns:
            A future of each answer. To cancel one frees its place.

        Raises:
            HttpRefusal: if there is no room for all of them.
        """
        if len(values) > self._bounds.max_queue:
            raise HttpRefusal(
                413, f"a request may hold {self._bounds.max_queue} inputs; it holds {len(values)}"
            )
        loop, since = asyncio.get_running_loop(), time.perf_counter()
        pipeline, light = pipeline or self.pipeline, True
        if shares(pipeline, options) and not is_light(pipeline, options, len(values), self._bounds):
            key, light = f"heavy {key}", False
        waiting = [Waiting(value, loop.create_future(), since, None, light) for value in values]
        self._queue(waiting, options, key, pipeline)
        return [entry.answer for entry in waiting]

    async def stream(
        self,
        value: Any,
        options: dict[str, Any],
        key: str,
        pipeline: Pipeline,
        ended: Callable[[Any], object] = lambda answer: None,
    ) -> AsyncGenerator[str]:
        """Yield the pieces of an answer that `shares` its steps; to close the iterator ends it.

        Args:
            value, options, key, pipeline: see `add`; the options are those of `pipeline.stream`.
            ended: takes the answer at its end.

        Raises:
            HttpRefusal: if there is no room.
            TimeoutError: if no piece comes in time.
            Exception: what the pipeline raises.
        """
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue()

        def tell(piece):
            with contextlib.suppress(RuntimeError):  # the event loop has ended: nobody reads
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        light = is_light(pipeline, options, 1, self._bounds, streams=True)
        entry = Waiting(value, loop.create_future(), time.perf_counter(), tell, light)
        entry.answer.add_done_callback(lambda _: pieces.put_nowait(None))
        self._queue([entry], options, f"stream {key}", pipeline)
        self.streams += 1
        try:
            while True:
                async with asyncio.timeout(self._bounds.timeout):
                    ready = [await pieces.get()]
                while pieces.qsize() >= AHEAD or (len(ready) > 1 and not pieces.empty()):
                    ready.append(pieces.get_nowait())
                if text := "".join(filter(None, ready)):
                    yield text
                if ready[-1] is None:
                    ended(entry.answer.result())
                    return
        finally:
            self.streams -= 1
            entry.answer.cancel()

    def _queue(self, waiting, options, key, pipeline):
        """Let entries wait for their answers by a pipeline."""
        if not waiting:  # a group is never empty
            return
        with self._lock:
            if self._count + len(waiting) > self._bounds.max_queue:
                self._drop_cancelled()
            if self._count + len(waiting) > self._bounds.max_queue:
                self._metrics.refused(len(waiting))
                raise HttpRefusal(
                    429, f"{self._count} inputs wait already: ask again", {"retry-after": "1"}
                )
            self._count += len(waiting)
            _, group = self._groups.setdefault((pipeline, key), (options, deque()))
            group.extend(waiting)
            wakes, self._idle = self._idle, False
        if wakes:  # behind what else has arrived by now, which joins the batch
            asyncio.get_running_loop().call_soon(self._wakes.release)

    def give_way(self) -> None:
        """Answer lighter batches that have waited, and let shared answers take steps; for
        `Runtime.before`, in any thread."""
        if threading.current_thread() is not self._thread or self._turns or not self._running:
            return
        running = self._running[-1]
        while running.seconds >= max(LONG, running.given):
            stepped = self._give_turn(running)
            pipeline, options, batch = self._take(functools.partial(self._goes_before, running))
            if batch:
                self._answer(pipeline, options, batch)
            elif not stepped:
                return

    def _give_turn(self, running):
        """Let shared answers take a step in the time of a batch; return whether there are any."""
        begun, self._turns = time.perf_counter(), True
        try:
            with self._wanted.while_(lambda: True):  # whoever waits for the batch
                return self._turn()
        finally:
            self._turns = False
            running.given += time.perf_counter() - begun

    def _goes_before(self, running, pipeline, options, group):
        """Return whether a group is answered before the batch that is running goes on."""
        if shares(pipeline, options):
            return False
        work = len(group) * work_of(pipeline, options)
        waited = time.perf_counter() - group[0].since
        took = self._took.get(work.bit_length(), 0.0)
        left = self._took.get(running.work.bit_length(), math.inf) - running.seconds
        return LIGHTER * work <= running.work and waited >= took and left >= PATIENCE * took

    def close(self) -> list[threading.Thread]:
        """Let the thread end, and what it is at; return it."""
        self._closed = True
        self._wakes.release()
        return [self._thread]

    @property
    def waiting(self) -> int:
        """Number of waiting inputs, without inputs of clients that left."""
        with self._lock:
            self._drop_cancelled()
            return self._count

    def _drop_cancelled(self):
        for key, (options, group) in list(self._groups.items()):
            waiting = deque(entry for entry in group if not entry.answer.done())
            self._count -= len(group) - len(waiting)
            if waiting:
                self._groups[key] = options, waiting
            else:
                del self._groups[key]

    def _run(self):
        while True:
            self._wakes.acquire()
            while not self._closed:
                self._turn()
                pipeline, options, batch = self._take(_is_apart)
                if batch:
                    self._answer(pipeline, options, batch)
                elif self._idle:
                    break
            if self._closed:
                return

    def _turn(self):
        """Let shared answers take a step, and others join before; return whether there are any."""
        try:
            self._let_in()
            if not len(self._shared):
                return False
            self._shared.step()
        except Exception as error:  # as in `_answer`
            traceback.print_exc(file=sys.stderr)
            self._shared.fail(error)
        return True

    def _let_in(self):
        """Let inputs join what is answered together, and those leave for which nobody waits.

        Each group comes once: others that arrive by then wait for the next step, which they would
        put off for ever.
        """
        if len(self._shared):
            self._metrics.abandoned(self._shared.drop(lambda entry: not entry.answer.done()))
        for _ in range(len(self._groups)):
            if self._closed:
                return
            pipeline, options, batch = self._take(self._may_join)
            if not batch:
                return
            work = _work_of(pipeline, options, batch[0])
            good = self._checked(pipeline, options, work, batch)
            if good:
                self._shared.begin(pipeline, options, good, work, batch[0].light)

    def _checked(self, pipeline, options, work, batch):
        """Return the inputs that are within the bounds; the others are told."""
        good = []
        for entry in batch:
            try:
                self._require_bounded(pipeline, options, work, entry.value)
            except Exception as error:
                self._deliver([entry], [error], 0.0)
            else:
                good.append(entry)
        return good

    def _may_join(self, pipeline, options, group):
        return shares(pipeline, options) and self._room(pipeline, options, group[0]) > 0

    def _room(self, pipeline, options, entry):
        """Return how many inputs like one may join what is answered together."""
        return self._shared.room(_work_of(pipeline, options, entry), entry.light)

    def _take(self, suits=lambda pipeline, options, group: True):
        """Return pipeline, options and inputs of the next batch, of a group that suits; no inputs
        if no such group waits."""
        with self._lock:
            for key, (options, group) in list(self._groups.items()):
                pipeline, _ = key
                if not suits(pipeline, options, group):
                    continue
                batch, most = [], self._most(pipeline, options, group[0])
                while group and len(batch) < most:
                    entry = group.popleft()
                    self._count -= 1
                    if not entry.answer.done():
                        batch.append(entry)
                del self._groups[key]
                if group:  # behind the other groups
                    self._groups[key] = options, group
                if batch:
                    return pipeline, options, batch
            self._idle = not (self._groups or self._running or len(self._shared))
            return self.pipeline, {}, []

    def _most(self, pipeline, options, entry):
        """Return how many inputs like one may share a batch."""
        if shares(pipeline, options):
            return max(self._room(pipeline, options, entry), 1)
        work = work_of(pipeline, options)
        return max(min(self._bounds.max_batch, self._bounds.max_work // work), 1)

    def _answer(self, pipeline, options, batch):
        running = Running(len(batch) * work_of(pipeline, options), time.perf_counter())
        self._running.append(running)
        is_wanted = functools.partial(self._is_wanted, batch)
        try:
            with self._wanted.while_(is_wanted):
                answers = self._answers(pipeline, [entry.value for entry in batch], options)
        except Abandoned:
            self._metrics.abandoned(len(batch))
            return
        except Exception as error:  # a fault of ours, which must not end the thread
            traceback.print_exc(file=sys.stderr)
            answers = [error] * len(batch)
        finally:
            self._running.pop()
            took = running.seconds
            if self._running:
                self._running[-1].given += took + running.given
        self._took[running.work.bit_length()] = took
        self._deliver(batch, answers, took)

    def _deliver(self, batch, answers, seconds, count=None):
        """Give inputs their answers or errors; `count`: how many were answered together."""
        self._metrics.answered(answers, seconds, count)
        try:
            batch[0].answer.get_loop().call_soon_threadsafe(_deliver, batch, answers)
        except RuntimeError:  # the event loop has ended: nobody waits
            self._closed = True

    def _is_wanted(self, batch):
        return not self._closed and any(not entry.answer.done() for entry in batch)

    def _answers(self, pipeline, values, options):
        """Return an answer or an error for each input."""
        work = work_of(pipeline, options)
        check = functools.partial(self._require_bounded, pipeline, options, work)
        return answers_or_errors(pipeline, values, options, check)

    def _require_bounded(self, pipeline, options, work, value):
        most = self._bounds.max_work
        if work > most:
            raise HttpRefusal(
                400,
                f"an answer may take {most} tokens, beams or samples times new tokens; this may "
                f"take {work}: ask for fewer",
            )
        most = self._bounds.max_tokens
        if MOST_WRITTEN * size_of(value) > most:
            count = tokens_of(pipeline.encode(value, **encoding_options(options)))
            if count > most:
                raise HttpRefusal(413, f"an input may have {most} tokens; it has {count}")


def _is_apart(pipeline, options, group):
    return not shares(pipeline, options)


def _work_of(pipeline, options, entry):
    return work_of(pipeline, options, streams=entry.tell is not None)


def _deliver(batch, answers):
    for entry, answer in zip(batch, answers):
        if entry.answer.done():
            continue
        if isinstance(answer, Exception):
            entry.answer.set_exception(answer)
        else:
            entry.answer.set_result(answer)


def size_of(value: Any) -> int:
    """Return the number of characters and numbers of an input."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(size_of, value))
    return 1


def tokens_of(row: Any) -> int:
    """Return the number of tokens that a model reads of what `Pipeline.encode` returns."""
    for parts in (
        getattr(getattr(row, "windows", None), "rows", None),
        getattr(row, "encodings", None),
    ):
        if parts is not None:
            return sum(map(len, parts))
    return len(row)
