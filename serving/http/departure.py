"""Clients that go before they are answered, requests whose time is over, and the end of what is
computed for them."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from starlette.types import Scope

DEPARTED = "seqkeras.departed"  # in a scope: functions that `Connection` calls when the client goes
FEWEST = 256  # blocks that are kept before those that have ended are dropped


class Gone(Exception):
    """The client has gone: nobody waits for an answer."""


class Abandoned(BaseException):
    """Nobody waits for what a thread computes.

    As it is no `Exception`, nothing takes it for an error of an input, which is tried again alone.
    """


class Wanted(threading.local):
    """The demand for what a thread computes, for `Runtime.before`."""

    _is_wanted: Callable[[], bool] | None = None

    @contextlib.contextmanager
    def while_(self, is_wanted: Callable[[], bool]) -> Iterator[None]:
        """Let the computation of this thread go on in the block only while a function returns
        True."""
        before, self._is_wanted = self._is_wanted, is_wanted
        try:
            yield
        finally:
            self._is_wanted = before

    def require(self) -> None:
        """Go on.

        Raises:
            Abandoned: if nobody waits any more.
        """
        if self._is_wanted is not None and not self._is_wanted():
            raise Abandoned


class until_gone:
    """Cancel what the block waits for when the client goes, and raise `Gone`; or when the time is
    over, and raise a TimeoutError.

    Args:
        scope: scope of ASGI.
        deadlines: when its time is over; None: never.
    """

    def __init__(self, scope: Scope, deadlines: "Deadlines | None" = None):
        self._departed = scope.setdefault(DEPARTED, [])
        self._deadlines = deadlines
        self._task: asyncio.Task | None = None
        self._reason: type[Exception] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._departed.append(self.leave)
        if self._deadlines is not None:
            self._deadlines.add(self)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: Any) -> None:
        self._task = None
        self._departed.remove(self.leave)
        if kind is asyncio.CancelledError and self._reason is not None:
            raise self._reason from error

    @property
    def is_over(self) -> bool:
        """Whether the block has ended."""
        return self._task is None

    def leave(self) -> None:
        """End the block, as the client has gone."""
        self._end(Gone)

    def expire(self) -> None:
        """End the block, as its time is over."""
        self._end(TimeoutError)

    def _end(self, reason):
        if self._task is not None and self._reason is None:
            self._reason = reason
            self._task.cancel()


class Limited(Protocol):
    """A block of code whose time may be over."""

    @property
    def is_over(self) -> bool: ...

    def expire(self) -> None: ...


class Deadlines:
    """The deadlines of blocks that all have as many seconds: the first to begin is the first to
    end, so that one timer is enough for all.

    Args:
        seconds: how long a block may take.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._blocks: deque[tuple[float, Limited]] = deque()  # when each ends, oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._most = FEWEST

    def add(self, block: Limited) -> None:
        """Let a block that begins now end in time."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._timer = loop, None
            self._blocks.clear()
        if len(self._blocks) >= self._most:
            self._forget()
        self._blocks.append((loop.time() + self._seconds, block))
        if self._timer is None:
            self._set_timer()

    def _forget(self):
        """Drop the blocks that have ended."""
        self._blocks = deque(entry for entry in self._blocks if not entry[1].is_over)
        self._most = max(FEWEST, 2 * len(self._blocks))

    def _set_timer(self):
        self._timer = self._loop.call_at(self._blocks[0][0], self._expire)

    def _expire(self):
        """End the blocks whose time is over, and wait for the next one."""
        self._timer, now = None, self._loop.time()
        while self._blocks and (self._blocks[0][1].is_over or self._blocks[0][0] <= now):
            _, block = self._blocks.popleft()
            block.expire()
        if self._blocks:
            self._set_timer()
