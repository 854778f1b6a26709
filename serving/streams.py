"""Streams of frames: a model answers each frame as it comes, from a state of constant size.

    stream = pipeline.open()
    answers = stream.push(frames)  # an answer for each frame

The answers do not depend on how frames are cut into chunks. A model of int8 reads one frame of one
stream at a time: its products have one scale for all that they read.
"""

import dataclasses
import functools
import hashlib
import itertools
import operator
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .checks import require_count, shown
from .manifest import Manifest, NoFiniteNumber, verify_files
from .opening import Runtime, open_session
from .parsing import as_json, parse_json
from .rows import NOTHING, Memory, Rows
from .steps import Steps

__all__ = ["Stream", "Streams"]

ROLE = PER = "stream"  # of the graph, and of the entries of its state
NEXT = "next_"  # before the name of an entry that leaves the graph
MAGIC = b"seqkeras stream 2"


class Chunk(NamedTuple):
    """Frames of a stream.

    Attributes:
        arrays: name of an input of the graph -> (frames, ...) float32.
        memory: the `Memory` of rows after them.
        about: for each frame what its answer tells beside the numbers, or None.
    """

    arrays: dict
    memory: Memory
    about: Sequence | None = None

    def __len__(self):
        return len(next(iter(self.arrays.values())))


@dataclasses.dataclass(frozen=True, eq=False)
class StreamState:
    """The state of a stream, for `open(state=...)`, here or in another process.

    `bytes(state)` writes it; `StreamState.from_bytes` reads that.

    Attributes:
        bundle: sha256 of the graph and its weights.
        frames: the number of frames so far.
        arrays: name -> array of the state, without a batch.
        memory: the `Memory` of rows.
    """

    bundle: str
    frames: int
    arrays: dict
    memory: Memory = NOTHING

    @property
    def nbytes(self) -> int:
        """Number of bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    def __repr__(self) -> str:
        return f"<StreamState after {self.frames:,} frames, {self.nbytes:,} bytes>"

    def __bytes__(self) -> bytes:
        head = {
            "bundle": self.bundle,
            "frames": self.frames,
            "memory": self.memory._asdict(),
            "arrays": {name: [a.dtype.name, [*a.shape]] for name, a in self.arrays.items()},
        }
        parts = (np.ascontiguousarray(array).tobytes() for array in self.arrays.values())
        content = b"".join([as_json(head).encode(), b"\n", *parts])
        return b"\n".join([MAGIC, _checksum(content), content])

    @classmethod
    def from_bytes(cls, content: bytes) -> "StreamState":
        """Return a state from its bytes.

        Raises:
            ValueError: if they are not whole.
        """
        try:
            magic, _, content = bytes(content).partition(b"\n")
            if magic != MAGIC:
                raise ValueError("they do not begin as those of a state do")
            checksum, _, content = content.partition(b"\n")
            if checksum != _checksum(content):
                raise ValueError("their checksum is another one")
            line, _, content = content.partition(b"\n")
            head = parse_json(line)
            arrays = {}
            for name, (dtype, shape) in head["arrays"].items():
                array = np.frombuffer(content, dtype, int(np.prod(shape)))
                content = content[array.nbytes :]
                arrays[name] = array.reshape(shape)
            if content:
                raise ValueError("there are more of them than the arrays have")
            bundle, frames, memory = head["bundle"], head["frames"], Memory.of(**head["memory"])
            if not (isinstance(bundle, str) and type(frames) is int and frames >= 0):
                raise ValueError("they name no bundle, or no number of frames")
            return cls(bundle, frames, arrays, memory)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"open: state must be the bytes of a stream's state, whole; {error}."
            ) from error


class StreamGraph:
    """The graph of a stream, opened when the first stream is.

        stream(frames, state) -> answers, state

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`; None for the default one.
        output: the name of the output that is read; None for the only one.
        inputs: the names of inputs beside the state that the pipeline feeds.
    """

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None, output, inputs):
        self._folder, self._manifest, self._runtime = folder, manifest, runtime or Runtime()
        self._output, self._inputs = output, inputs

    def require(self, who: str) -> None:
        """Raise a ValueError unless the bundle has a stream."""
        if ROLE not in self._manifest.graphs:
            raise ValueError(
                f"{who}: this bundle has no stream; export the run of a model that reads no later "
                "frames with --stream."
            )

    @functools.cached_property
    def _graph(self):
        return self._runtime.graphs_of(self._manifest)[ROLE]

    @functools.cached_property
    def identity(self) -> str:
        """The sha256 of the graph and its weights."""
        files = (self._manifest.files[file].sha256 for file in self._graph.files)
        return hashlib.sha256("".join(files).encode()).hexdigest()

    @property
    def delay(self) -> int:
        """The number of frames by which answers come late."""
        return self._graph.delay

    @property
    def warm_up(self) -> int:
        """The number of frames before the first answer."""
        return max(self._graph.delay, self._graph.warm_up)

    @functools.cached_property
    def zeros(self) -> dict:
        """The state before the first frame, without a batch."""
        specs = {spec.name: spec for spec in self._graph.inputs}
        names = self._manifest.stream_state
        return {name: np.zeros(specs[name].shape[1:], specs[name].dtype) for name in names}

    @functools.cached_property
    def session(self):
        """The session of the graph."""
        verify_files(self._folder, self._manifest, self._graph.files)
        state = {*self._manifest.stream_state}
        given = {spec.name for spec in self._graph.inputs} - state
        return open_session(
            self._folder,
            self._manifest,
            ROLE,
            self._runtime,
            {*given & {*self._inputs}, *state},
            set(self.names),
        )

    @functools.cached_property
    def output(self) -> str:
        """The name of the output that is read."""
        names = [spec.name for spec in self._graph.outputs if not spec.name.startswith(NEXT)]
        return self._output or names[0]

    @functools.cached_property
    def names(self) -> list[str]:
        """The names of the answers, and of the state after them."""
        return [self.output, *(NEXT + name for name in self._manifest.stream_state)]

    def splits(self, shape: tuple) -> bool:
        """Return whether frames (B, T, ...) need several runs, as int8 reads one at a time."""
        return shape[:2] != (1, 1) and self._runtime.precision.startswith("int")

    def run(self, arrays: dict, state: dict) -> tuple[np.ndarray, dict]:
        """Return the answers (B, T, ...) to frames (B, T, ...), and the state after them.

        Raises:
            BundleError: if the graph fails.
        """
        if self.splits(next(iter(arrays.values())).shape):
            return self._run_one_by_one(arrays, state)
        return self._run(arrays, state)

    def _run(self, arrays, state):
        answers, *after = self.session.run(self.names, arrays | state)
        return answers, dict(zip(state, after))

    def _run_one_by_one(self, arrays, state):
        batch_size, length = next(iter(arrays.values())).shape[:2]
        rows, states = [], []
        for row in range(batch_size):
            row_state, answers = {name: array[[row]] for name, array in state.items()}, []
            for step in range(length):
                now = {name: array[[row], step : step + 1] for name, array in arrays.items()}
                answer, row_state = self._run(now, row_state)
                answers.append(answer)
            rows.append(np.concatenate(answers, axis=1))
            states.append(row_state)
        after = {name: np.concatenate([row_state[name] for row_state in states]) for name in state}
        return np.concatenate(rows), after


@dataclasses.dataclass(frozen=True)
class Streaming:
    """What a pipeline's streams share.

    Attributes:
        who: the pipeline's name, for errors.
        graph: the `StreamGraph`.
        read: (frames, name, `Memory`) -> `Chunk`; raises a ValueError beginning with the name.
        answer: (numbers of a frame, its number, what is told of it) -> its answer.
        rows: the `Rows` of a table whose rows are frames; None for numbers.
    """

    who: str
    graph: StreamGraph
    read: Callable
    answer: Callable
    rows: Rows | None = None

    def opened(self, streams: int | None, state: Any) -> "Stream | Streams":
        """Return a `Stream`, or `Streams`; see `Pipeline.open`."""
        self.graph.require(self.who)
        if streams is None:
            return Stream(self, self.state_of(state))
        if state is not None:
            raise ValueError(
                f"{self.who}: state is of one stream; give those of several by `replace`."
            )
        return Streams(self, require_count(f"{self.who}: streams", streams))

    def state_of(self, state: "StreamState | bytes | None") -> StreamState:
        """Return a state that fits the graph; zeros for None.

        Raises:
            ValueError: if it is the state of another bundle or precision, or is not whole.
        """
        if state is None:
            return StreamState(self.graph.identity, 0, self.graph.zeros)
        if isinstance(state, (bytes, bytearray, memoryview)):
            state = StreamState.from_bytes(state)
        if not isinstance(state, StreamState):
            raise ValueError(
                f"{self.who}: state must be the state of a stream, or its bytes; received "
                f"{shown(state)}."
            )
        forms = [
            {name: (array.dtype, array.shape) for name, array in arrays.items()}
            for arrays in (state.arrays, self.graph.zeros)
        ]
        if state.bundle != self.graph.identity or forms[0] != forms[1]:
            raise ValueError(
                f"{self.who}: state is that of another bundle or precision; open it there, or "
                "begin anew."
            )
        return state

    def answers(self, numbers, chunk, frames, name):
        """Return the answers to a chunk's frames; None for those before the first.

        Args:
            numbers: (T, ...), the graph's.
            chunk: the `Chunk`.
            frames: number of frames before the chunk.
            name: name of the frames, for errors.

        Raises:
            BundleError: if a number is not finite.
        """
        if not np.isfinite(numbers).all():
            raise NoFiniteNumber(name)
        about = itertools.repeat(None) if chunk.about is None else chunk.about
        delay, warm_up = self.graph.delay, self.graph.warm_up
        return [
            None if frame < warm_up else self.answer(row, frame - delay, told)
            for frame, (row, told) in enumerate(zip(numbers, about), start=frames)
        ]


class _Answering:
    """What a stream and several streams know of their answers.

    Attributes:
        delay: the number of frames by which answers come late.
        warm_up: the number of frames before the first answer of a stream.
    """

    _streaming: Streaming

    @property
    def delay(self) -> int:
        return self._streaming.graph.delay

    @property
    def warm_up(self) -> int:
        return self._streaming.graph.warm_up


class Stream(_Answering):
    """One stream of frames, in the order in which they come.

    `Pipeline.open` makes it. A call that raises leaves the state as it was. Only one thread may use
    a stream at a time.

    Args:
        streaming: what the streams of the pipeline share, `Pipeline.streaming`.
        state: the `StreamState` from which the stream goes on.

    Attributes:
        state: the `StreamState` after the frames so far.
        delay: the number of frames by which answers come late.
        warm_up: the number of frames before the first answer.

    Example:
        >>> from seqkeras.serving import load
        >>> classify = load("bundles/gestures", threads=1)
        >>> stream = classify.open()
        >>> answers = stream.push([[0.1, 0.2, 0.3]] * 5)  # an answer for each frame
        >>> later = classify.open(state=bytes(stream.state))  # goes on, here or in another process
        >>> len(answers), len(later.push([[0.4, 0.5, 0.6]])), later.state.frames
        (5, 1, 6)
    """

    def __init__(self, streaming: Streaming, state: StreamState):
        self._streaming, self._memory, self._frames = streaming, state.memory, state.frames
        self._steps = Steps(streaming.graph, [state.arrays])
        self._is_open = True

    def __repr__(self) -> str:
        return f"<Stream of {self._streaming.who} after {self._frames:,} frames>"

    @property
    def state(self) -> StreamState:
        arrays = {name: array[0].copy() for name, array in self._steps.state.items()}
        return StreamState(self._streaming.graph.identity, self._frames, arrays, self._memory)

    def push(self, frames: Any, name: str | None = None) -> list:
        """Return the answer to each of some frames, None for the first `warm_up` frames.

        Args:
            frames: an array (frames, features), or a list of frames; with `settings.rows` a list of
                rows, dictionaries or lists; for a model with known covariates, a dictionary of
                "series" and "known", which has for each row the rows that follow it.
            name: name of the frames, for errors; None for "frames".

        Raises:
            ValueError: if a frame is refused, or the stream has ended.
        """
        if not self._is_open:
            raise ValueError(f"{self._streaming.who}: the stream has ended; open another one.")
        streaming = self._streaming
        name = name or f"{streaming.who}: frames"
        chunk = streaming.read(frames, name, self._memory)
        arrays = {name: array[np.newaxis] for name, array in chunk.arrays.items()}
        numbers = self._steps.run(arrays)[0]
        answers = streaming.answers(numbers, chunk, self._frames, name)
        self._steps.keep()
        self._memory = chunk.memory
        self._frames += len(chunk)
        return answers

    def missing(self, row: Any, name: str | None = None) -> list:
        """Return the rows, without values, of the times between the last row and this one: pushed
        before it, they fill a gap. None are missing where rows have no time.

        Args:
            row: a row of a table, as `push` takes them in a list.
            name: name of the row, for errors; None for "frames".

        Raises:
            ValueError: if the row is refused, or more rows are missing than a gap may have.
        """
        rows = self._streaming.rows
        name = name or f"{self._streaming.who}: frames"
        return [] if rows is None else rows.missing_before(row, name, self._memory)

    async def follow(self, source: Any) -> AsyncIterator:
        """Yield the answer to each frame of an iterator, asynchronous or not, as it comes.

        Raises:
            ValueError: if a frame is refused, or `source` is no iterable of frames.
        """
        if hasattr(source, "__aiter__"):
            async for frame in source:
                yield self.push([frame])[0]
        elif isinstance(source, Iterable):
            for frame in source:
                yield self.push([frame])[0]
        else:
            raise ValueError(
                f"{self._streaming.who}: source must be an iterable of frames; received "
                f"{shown(source)}."
            )

    def end(self) -> None:
        """End the stream: it takes no further frame."""
        self._is_open = False


class Streams(_Answering):
    """Several streams, each with frames of its own, stepped together.

    `Pipeline.open(streams=N)` makes them. A call that raises leaves all states as they were.

    Args:
        streaming: what the streams of the pipeline share, `Pipeline.streaming`.
        count: the number of streams, N.

    Attributes:
        delay: the number of frames by which answers come late.
        warm_up: the number of frames before the first answer of each stream.

    Example:
        >>> import numpy as np
        >>> from seqkeras.serving import load
        >>> streams = load("bundles/gestures", threads=1).open(streams=2)
        >>> answers = streams.push([np.zeros((5, 3)), None])  # nothing came in the second stream
        >>> [len(of_stream) for of_stream in answers]
        [5, 0]
    """

    def __init__(self, streaming: Streaming, count: int):
        self._streaming = streaming
        self._steps = Steps(streaming.graph, [streaming.graph.zeros] * count)
        self._memories, self._frames = [NOTHING] * count, [0] * count

    def __len__(self) -> int:
        return len(self._frames)

    def __repr__(self) -> str:
        return f"<{len(self)} streams of {self._streaming.who}>"

    def state(self, index: int) -> StreamState:
        """Return the `StreamState` of a stream.

        Args:
            index: the stream's index, from 0.

        Raises:
            ValueError: if there is no stream of that index.
        """
        index = self._index(index)
        arrays = {name: array[index].copy() for name, array in self._steps.state.items()}
        identity = self._streaming.graph.identity
        return StreamState(identity, self._frames[index], arrays, self._memories[index])

    def replace(self, index: int, state: StreamState | bytes | None = None) -> None:
        """Put another stream in the place of one that has ended: a new one, or one of a state.

        Args:
            index: index of the stream that has ended, from 0.
            state: the state from which the other stream goes on, or its bytes; None to begin.

        Raises:
            ValueError: if there is no stream of that index, or the state belongs to another bundle.
        """
        index, state = self._index(index), self._streaming.state_of(state)
        for name, array in state.arrays.items():
            self._steps.state[name][index] = array
        self._memories[index], self._frames[index] = state.memory, state.frames

    def push(self, frames: Sequence) -> list[list]:
        """Return for each stream the answers to its frames.

        Args:
            frames: for each stream its frames, as `Stream.push` takes them, or None for none.

        Raises:
            ValueError: if a frame is refused; it names the stream.
        """
        streaming, count = self._streaming, len(self)
        if not isinstance(frames, Sequence) or len(frames) != count:
            raise ValueError(
                f"{streaming.who}: frames must be a list of {count}, one for each stream, None for "
                f"a stream without frames; received {shown(frames)}."
            )
        chunks = {
            index: streaming.read(given, self._name(index), self._memories[index])
            for index, given in enumerate(frames)
            if given is not None
        }
        answers: list[list] = [[] for _ in frames]
        if not chunks:
            return answers
        for (index, chunk), numbers in zip(chunks.items(), self._numbers(chunks)):
            answers[index] = streaming.answers(
                numbers, chunk, self._frames[index], self._name(index)
            )
        self._steps.keep()
        for index, chunk in chunks.items():
            self._memories[index] = chunk.memory
            self._frames[index] += len(chunk)
        return answers

    def _numbers(self, chunks):
        """Return the numbers that answer each chunk; `self._steps` has the state after them."""
        lengths = sorted({len(chunk) for chunk in chunks.values()})
        if len(chunks) == len(self) and len(lengths) == 1:
            return self._steps.run(_stacked(chunks.values(), slice(None)))
        state = {name: array.copy() for name, array in self._steps.state.items()}
        numbers, done = {index: [] for index in chunks}, 0
        for end in lengths:
            rows = [index for index, chunk in chunks.items() if len(chunk) >= end]
            arrays = _stacked([chunks[index] for index in rows], slice(done, end))
            row_states = {name: array[rows] for name, array in state.items()}
            answers, after = self._streaming.graph.run(arrays, row_states)
            for name, array in after.items():
                state[name][rows] = array
            for index, answer in zip(rows, answers):
                numbers[index].append(answer)
            done = end
        self._steps.put(state)
        return [np.concatenate(parts) for parts in numbers.values()]

    def _name(self, index):
        return f"{self._streaming.who}: frames of stream {index}"

    def _index(self, index):
        try:
            number = -1 if isinstance(index, bool) else operator.index(index)
        except TypeError:
            number = -1
        if not 0 <= number < len(self):
            raise ValueError(
                f"{self._streaming.who}: a stream's index must be from 0 to {len(self) - 1}; "
                f"received {shown(index)}."
            )
        return number


def _checksum(content):
    """Return the CRC-32 (ISO 3309) of bytes, in hexadecimal digits."""
    return b"%08x" % zlib.crc32(content)


def _stacked(chunks, part):
    """Return name -> (B, T, ...), a part of the frames of chunks."""
    of_chunks = [chunk.arrays for chunk in chunks]
    return {name: np.stack([arrays[name][part] for arrays in of_chunks]) for name in of_chunks[0]}
