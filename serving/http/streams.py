"""The thread that runs a bundle's streams, a piece of each in turn."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator

from .bounds import Bounds
from .departure import Abandoned, Wanted
from .http_refusal import HttpRefusal

AHEAD = 64  # pieces that wait for a slow reader; then its stream pauses


class Stream:
    """The pieces of an answer, for one reader in the event loop.

    Args:
        begin: returns the iterator over the pieces; it is called in the thread.
    """

    def __init__(self, begin: Callable[[], Iterator[str]]):
        self.begin = begin
        self.pieces: Iterator[str] | None = None
        self.found: asyncio.Queue = asyncio.Queue()
        self.left, self.ahead = False, 0
        self._loop = asyncio.get_running_loop()

    @property
    def pauses(self) -> bool:
        """Whether its reader has enough to read."""
        return self.ahead >= AHEAD

    def tell(self, item: str | Exception | None) -> None:
        """Give the reader a piece, an error, or None at the end; call it in the thread."""
        self._loop.call_soon_threadsafe(self.found.put_nowait, item)


class Streams:
    """Runs the streams of a bundle in one thread, which takes a piece of each in turn.

    A stream whose reader has left ends before the next run of a graph.

    Args:
        bounds: the server's `Bounds`.
        wanted: the `Wanted` that the pipeline asks before each run of a graph.
    """

    def __init__(self, bounds: Bounds, wanted: Wanted):
        self._bounds, self._wanted = bounds, wanted
        self._streams: deque[Stream] = deque()
        self._changed, self._closed = threading.Condition(), False
        self._thread: threading.Thread | None = None

    @property
    def count(self) -> int:
        """Number of streams that run."""
        return sum(not stream.left for stream in [*self._streams])

    @property
    def pauses(self) -> bool:
        """Whether all pause, for their readers have enough to read."""
        return bool(self._streams) and all(stream.pauses for stream in [*self._streams])

    async def read(self, begin: Callable[[], Iterator[str]]) -> AsyncGenerator[str]:
        """Yield the pieces of a stream; to close the iterator ends the stream.

        Args:
            begin: returns an iterator over the pieces; it is called in the thread.

        Raises:
            HttpRefusal: if there is no room.
            TimeoutError: if no piece comes in time.
            Exception: what the iterator raises.
        """
        stream = Stream(begin)
        with self._changed:
            if self.count >= self._bounds.max_queue:
                raise HttpRefusal(429, "too many streams run already", {"retry-after": "1"})
            self._streams.append(stream)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, daemon=True, name="seqkeras-streams"
                )
                self._thread.start()
            self._changed.notify()
        try:
            while True:
                async with asyncio.timeout(self._bounds.timeout):
                    item = await stream.found.get()
                with self._changed:
                    stream.ahead -= 1
                    self._changed.notify()  # it may have paused
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            with self._changed:
                stream.left = True
                self._changed.notify()

    def close(self) -> list[threading.Thread]:
        """Let the thread end, and what it is at; return it, if there is one."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        return [] if self._thread is None else [self._thread]

    def _run(self):
        while True:
            with self._changed:
                while not self._closed and self._ready() is None:
                    self._changed.wait()
                if self._closed:
                    return
                stream = self._ready()
                self._streams.remove(stream)
                self._streams.append(stream)  # the others are before it now
                stream.ahead += 1
            piece = None if stream.left else self._next(stream)
            if not isinstance(piece, str):
                with self._changed:
                    self._streams.remove(stream)
                if hasattr(stream.pieces, "close"):
                    stream.pieces.close()
            if not stream.left:
                stream.tell(piece)

    def _ready(self):
        """Return the first stream that does not pause, or None."""
        return next((stream for stream in self._streams if stream.left or not stream.pauses), None)

    def _next(self, stream):
        """Return the next piece of a stream, None at its end, or an error."""
        try:
            with self._wanted.while_(lambda: not (stream.left or self._closed)):
                if stream.pieces is None:
                    stream.pieces = stream.begin()
                return next(stream.pieces, None)
        except Abandoned:
            return None
        except Exception as error:
            return error
