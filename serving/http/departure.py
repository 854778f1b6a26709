"""Clients that go before they are answered, and the end of what is computed for them."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

from starlette.types import Scope

DEPARTED = "seqkeras.departed"  # in a scope: functions that `Connection` calls when the client goes


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


@contextlib.contextmanager
def until_gone(scope: Scope) -> Iterator[None]:
    """Cancel what the block waits for when the client goes, and raise `Gone`."""
    task, left = asyncio.current_task(), False

    def leave():
        nonlocal left
        left = True
        task.cancel()

    departed = scope.setdefault(DEPARTED, [])
    departed.append(leave)
    try:
        yield
    except asyncio.CancelledError as error:
        if left:
            raise Gone from error
        raise
    finally:
        departed.remove(leave)
