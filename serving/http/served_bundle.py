"""A bundle that is served: its pipeline, which another folder may replace, and its worker."""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..checks import require_count, shown
from ..lines import from_json
from ..manifest import MANIFEST, Manifest, read_manifest
from ..pipelines import open_bundle
from ..pipelines.generate import Generate
from ..pipelines.options import option_names
from ..pipelines.pipeline import Pipeline
from .bounds import Bounds
from .cores import count_cores, threads_for, weights_of
from .departure import Wanted
from .http_refusal import HttpRefusal
from .log import log
from .metrics import BundleMetrics, Metrics
from .shared import shares
from .signature import Signature, signatures_of
from .streams import Streams
from .worker import Worker

LOOK_AGAIN = 1.0  # seconds between two looks at a bundle's manifest
LAST = 3.0  # seconds in which all threads must end with the server
VERSION = "1"  # of a bundle's SavedModels: saved_model/1
OF_THE_SERVER = ("token_budget",)  # options that a client can not choose
COUNTS = ("num_beams", "n_best")


@dataclass(frozen=True)
class Opening:
    """The options that open a bundle; see `serving.load`.

    By default an operation has a thread for each 4 MiB of the graphs' weights, at most one a core.
    """

    precision: str | None = None
    threads: int | None = None
    providers: tuple[str, ...] | None = None
    cache_bytes: int | None = None


class ServedBundle:
    """A bundle under a name.

    Args:
        name: in addresses.
        folder: the bundle.
        opening: an `Opening`.
        bounds: the server's `Bounds`.
        metrics: the server's `Metrics`.

    Raises:
        ValueError: if the bundle can not be opened.
    """

    def __init__(self, name: str, folder: Path, opening: Opening, bounds: Bounds, metrics: Metrics):
        self.name, self.folder, self._opening, self._bounds = name, folder, opening, bounds
        self._metrics = BundleMetrics(metrics, name)
        self._seen = _state(folder)
        self._wanted = Wanted()
        self.worker = Worker(self._load(), bounds, self._metrics, self._wanted)
        self.streams = Streams(bounds, self._wanted)
        self._signatures = self.pipeline, signatures_of(self.pipeline)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that answers now."""
        return self.worker.pipeline

    @property
    def manifest(self) -> Manifest:
        """The manifest of the bundle that answers now."""
        return self.pipeline.manifest

    @property
    def signatures(self) -> dict[str, Signature]:
        """Signatures of the bundle in columns; see `signatures_of`."""
        pipeline, signatures = self._signatures
        if pipeline is not self.pipeline:
            pipeline = self.pipeline
            signatures = signatures_of(pipeline)
            self._signatures = pipeline, signatures
        return signatures

    @property
    def most_answers(self) -> int:
        """Largest number of answers of an input."""
        return self._bounds.max_answers

    @property
    def kind(self) -> str:
        """The name of its pipeline."""
        return type(self.pipeline).__name__

    def option_names(
        self, streams: bool = False, pipeline: Pipeline | None = None
    ) -> tuple[str, ...]:
        """Return the names of the options that a request to a pipeline may have."""
        pipeline = pipeline or self.pipeline
        function = pipeline.stream if streams else pipeline.__call__
        names = option_names(function)
        return tuple(name for name in names if name not in OF_THE_SERVER)

    def ask(self, content: Any) -> tuple[Any, asyncio.Future]:
        """Return the input of JSON content, and a future of its answer.

        Raises:
            HttpRefusal: if there is no room.
        """
        value = from_json(content)
        [future] = self._add([value], {}, self.pipeline)
        return value, future

    async def answers(self, values: Sequence, options: dict[str, Any] | None = None) -> list:
        """Return an answer for each input.

        Raises:
            HttpRefusal: if the options are refused, or there is no room.
            Exception: the first error of an input.
        """
        answers = await self.answers_or_errors(values, options)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    async def answers_or_errors(
        self,
        values: Sequence,
        options: dict[str, Any] | None = None,
        pipeline: Pipeline | None = None,
    ) -> list:
        """Return an answer, or an error, for each input.

        Args:
            values: the inputs.
            options: options of the pipeline.
            pipeline: which answers; None for the one that is there now.

        Raises:
            HttpRefusal: if the options are refused, or there is no room.
        """
        futures = self._add(values, options or {}, pipeline or self.pipeline)
        if len(futures) == 1:
            try:
                return [await futures[0]]
            except (ValueError, HttpRefusal, MemoryError) as error:
                return [error]
        return await _all(futures)

    async def answers_to_rows(
        self, signature: Signature, columns: dict[str, np.ndarray], options: dict[str, Any]
    ) -> list:
        """Return an answer, or an error, for each row of the columns that a signature takes.

        Args:
            signature: one of `signatures`, read in this turn of the event loop: the pipeline of now
                answers all rows.
            columns: name -> (B, ...) array.
            options: options of the pipeline, beside the signature's options.

        Raises:
            HttpRefusal: if the columns or the options are refused, or there is no room.
        """
        if options.get("top") is not None:
            raise HttpRefusal(
                400,
                "top: the tensor of scores has all labels; POST /v1/bundles/"
                f"{self.name} gives some of them",
            )
        values, options = signature.values(columns), signature.options | options
        row_options, pipeline = signature.options_of_rows(columns), self.pipeline
        if row_options is None:
            answers = await self.answers_or_errors(values, options, pipeline)
        else:
            by_row = [options | one for one in row_options]
            answers = await self._answers_by_options(values, by_row, pipeline)
        if signature.room is None:
            return answers
        refused = [index for index, answer in enumerate(answers) if isinstance(answer, ValueError)]
        room = min(signature.room, self._bounds.max_new_tokens or signature.room)
        cut = {"truncate": True, "max_new_tokens": room} | options
        again = [cut if row_options is None else cut | row_options[index] for index in refused]
        values = [values[index] for index in refused]
        second = await self._answers_by_options(values, again, pipeline)
        for index, answer in zip(refused, second):
            answers[index] = answer
        return answers

    async def _answers_by_options(self, values, options, pipeline):
        """Return an answer, or an error, for each input with its own options."""
        groups = {}  # key -> places
        for index, row_options in enumerate(options):
            groups.setdefault(json.dumps(row_options, sort_keys=True), []).append(index)
        futures = {}  # by place
        try:
            for places in groups.values():
                inputs = [values[index] for index in places]
                added = self._add(inputs, options[places[0]], pipeline)
                futures |= zip(places, added)
        except HttpRefusal:
            for future in futures.values():
                future.cancel()
            raise
        return await _all([futures[index] for index in range(len(values))])

    def _add(self, values, options, pipeline):
        """Return a future of each answer."""
        options = self._bounded(options, pipeline, streams=False)
        key = json.dumps(options, sort_keys=True) if options else ""
        return self.worker.add(values, options, key, pipeline)

    def stream(
        self,
        value: Any,
        options: dict[str, Any],
        ended: Callable[[Any], object] = lambda answer: None,
    ) -> AsyncGenerator[str]:
        """Return an iterator over the pieces of an answer.

        Args:
            value, options: as the pipeline's `stream` takes them.
            ended: takes what the pipeline's iterator returns at its end.

        Raises:
            HttpRefusal: if the options are refused, or the bundle does not stream.
        """
        if not hasattr(self.pipeline, "stream"):
            raise HttpRefusal(400, f"{self.name} does not stream: it is of {self.kind}")
        pipeline = self.pipeline
        options = self._bounded(options, pipeline, streams=True)
        if shares(pipeline, options):
            key = json.dumps(options, sort_keys=True)
            return self.worker.stream(value, options, key, pipeline, ended)

        def pieces():
            ended((yield from pipeline.stream(value, **options)))

        return self.streams.read(pieces)

    def file(self, path: str) -> Path:
        """Return the manifest, or a file that it names.

        Raises:
            HttpRefusal: if it names no such file, or that is a link out of the bundle.
        """
        if path == MANIFEST or path in self.manifest.files:
            file = self.folder / path
            if file.resolve().is_relative_to(self.folder.resolve()):
                return file
        raise HttpRefusal(404, f"the bundle names no file {shown(path)}")

    def count_waiting(self) -> None:
        """Let the metrics know what waits."""
        self._metrics.waiting.set(self.worker.waiting)
        self._metrics.streams.set(self.streams.count + self.worker.streams)

    async def follow(self) -> None:
        """Take up each bundle that replaces this one in its folder, until it is cancelled.

        Requests are answered by the old one until the new one is open. If that can not be opened,
        the old one goes on, and the log says why.
        """
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            self.count_waiting()  # which another process may be asked for
            seen = _state(self.folder)
            if seen in (None, self._seen):
                continue
            self._seen = seen
            try:
                self.worker.pipeline = await asyncio.to_thread(self._load)
                self._metrics.loads["answered"].inc()
                log(f"{self.name}: replaced; made {self.manifest.created}")
            except Exception as error:
                self._metrics.loads["failed"].inc()
                log(f"{self.name}: stays as it was, for its replacement is refused: {error}")

    def close(self) -> list[threading.Thread]:
        """Let its threads end, and what they are at; return them."""
        return [*self.streams.close(), *self.worker.close()]

    def _load(self):
        opening, threads = self._opening, self._opening.threads
        if threads is None and not opening.providers:
            weights = weights_of(read_manifest(self.folder), opening.precision)
            threads = threads_for(weights, count_cores())
        return open_bundle(
            self.folder,
            opening.precision,
            threads,
            opening.providers,
            opening.cache_bytes,
            before=self._before_run,
        )

    def _before_run(self):
        self._wanted.require()
        self.worker.give_way()

    def _bounded(self, options, pipeline, streams):
        """Return the options of a call, with the server's bounds."""
        most = self._bounds.max_new_tokens
        if not options and most is None:  # to look at a signature takes 0.1 ms
            return {}
        kind, known = type(pipeline).__name__, self.option_names(streams, pipeline)
        for name in options:
            if name not in known:
                raise HttpRefusal(
                    400, f"{kind} has no option {shown(name)}; it has {', '.join(known)}"
                )
        options = dict(options)
        for name in COUNTS:
            if options.get(name) is not None:
                options[name] = _count(kind, name, options[name], self._bounds.max_answers)
        if isinstance(options.get("forced_tokens"), dict):  # the keys of JSON are strings
            options["forced_tokens"] = {
                _place(index): token for index, token in options["forced_tokens"].items()
            }
        if most is not None and isinstance(pipeline, Generate):
            name = "max_new_tokens"
            count = options.get(name)
            options[name] = most if count is None else _count(kind, name, count, most)
        return options


class ServedBundles:
    """All bundles of a server, by name."""

    def __init__(self, bundles: Sequence[ServedBundle]):
        self._bundles = {bundle.name: bundle for bundle in bundles}
        self._stuck: list[threading.Thread] = []

    def __iter__(self):
        return iter(self._bundles.values())

    def find(self, name: str) -> ServedBundle | None:
        """Return the bundle of a name, or None."""
        return self._bundles.get(name)

    def close(self) -> None:
        """Wait until all threads end, but not for long: each looks before each run of a graph."""
        threads = [thread for bundle in self for thread in bundle.close()]
        deadline = time.monotonic() + LAST
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        self._stuck = [thread for thread in threads if thread.is_alive()]
        if self._stuck:
            log(f"what runs did not end within {LAST:g} s: it is given up")

    def leave(self) -> None:
        """End the process at once if a thread is within a graph: else onnxruntime aborts it."""
        if any(thread.is_alive() for thread in self._stuck):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def require(self, name: str) -> ServedBundle:
        """Return the bundle of a name.

        Raises:
            HttpRefusal: if there is none.
        """
        if name not in self._bundles:
            known = ", ".join(self._bundles)
            raise HttpRefusal(404, f"there is no bundle {shown(name)}; there is {known}")
        return self._bundles[name]


def _count(kind, name, value, most):
    try:
        return require_count(f"{kind}: {name}", value, most)
    except ValueError as error:
        raise HttpRefusal(400, str(error)) from error


def _place(text):
    """Return a key of `forced_tokens` as the number that it is.

    Raises:
        HttpRefusal: if it is none.
    """
    if not (text.isdecimal() and len(text) < 20):
        raise HttpRefusal(
            400, f"a place of forced_tokens must be a whole number from 0; received {shown(text)}"
        )
    return int(text)


async def _all(futures):
    """Return the result or the error of each future; if nobody waits, their places are free."""
    try:
        return await asyncio.gather(*futures, return_exceptions=True)
    finally:
        for future in futures:
            future.cancel()


def _state(folder):
    """Return what tells a bundle from the one before it in its folder; None without a bundle."""
    try:
        status = os.stat(folder / MANIFEST)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
