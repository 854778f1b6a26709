"""Requests that need no task: one input for a bundle, in the server's own API.

    POST /v1/bundles/NAME    {"input": ...}

Most requests are of this kind. A task, a router and the messages of ASGI would take as long as
everything else that they need of the event loop. The `Application` answers all others, and those
whose body comes much later than their head.
"""

import time
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from .access import GONE, Access
from .body import json_of
from .bounds import Bounds
from .cycle import Cycle
from .departure import DEPARTED, Deadlines, Gone
from .endpoint import API, plain_error, refusal_of, reply
from .http_refusal import HttpRefusal
from .plain import content_of
from .served_bundle import ServedBundle

ELSEWHERE = frozenset({b"origin", b"content-encoding"})  # headers that the application answers


class Direct:
    """Answers these requests, as `PlainApi.answer` does.

    Args:
        bundles: the bundles.
        access: the server's `Access`.
        bounds: the server's `Bounds`.
    """

    def __init__(self, bundles: Iterable[ServedBundle], access: Access, bounds: Bounds):
        self._bundles = {f"/v1/bundles/{bundle.name}": bundle for bundle in bundles}
        self._access, self._most = access, bounds.max_body
        self._deadlines = Deadlines(bounds.timeout)

    def awaits(self, cycle: Cycle) -> bool:
        """Return whether a request whose body has not come yet may be one of these, small enough to
        wait for its body."""
        scope: Any = cycle.scope
        if scope["path"] not in self._bundles or cycle.waiting_for_100_continue:
            return False
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        return length.isdigit() and int(length) <= min(self._most, HIGH_WATER_LIMIT)

    def begin(self, cycle: Cycle) -> bool:
        """Let a request with its whole body wait for its answer; return False if it is another one,
        or is refused before it waits."""
        scope: Any = cycle.scope
        bundle = self._bundles.get(scope["path"])
        if bundle is None or scope["method"] != "POST" or not self._may_begin(cycle):
            return False
        try:
            content = json_of(bytes(cycle.body))
        except HttpRefusal:
            return False
        if not isinstance(content, dict) or [*content] != ["input"]:
            return False
        scope[API] = "plain"
        waiting = _Waiting(cycle, self._access, content["input"])
        try:
            waiting.wait_for(bundle)
        except HttpRefusal as refusal:
            waiting.refuse(refusal)
        else:
            self._deadlines.add(waiting)
        return True

    def refuse(self, cycle: Cycle, refusal: HttpRefusal) -> None:
        """Answer a request with a refusal at once."""
        _Waiting(cycle, self._access, None).refuse(refusal)

    def _may_begin(self, cycle):
        return not (
            cycle.waiting_for_100_continue
            or cycle.flow.write_paused  # what is sent must wait
            or len(cycle.body) > self._most
            or any(name in ELSEWHERE for name, _ in cycle.scope["headers"])
            or self._access.refusal(cycle.scope) is not None
        )


class _Waiting:
    """A request that waits for its answer; see `departure.until_gone`."""

    __slots__ = ("_access", "_begun", "_cycle", "_future", "_reason", "_value")

    def __init__(self, cycle: Cycle, access: Access, value: Any):
        self._cycle: Any = cycle
        self._access, self._value = access, value
        self._begun = time.perf_counter()
        self._reason: type[Exception] | None = None
        self._future: Any = None  # its answer

    def wait_for(self, bundle: ServedBundle) -> None:
        """Let the input wait.

        Raises:
            HttpRefusal: if there is no room.
        """
        self._value, self._future = bundle.ask(self._value)
        self._future.add_done_callback(self._finish)
        scope: Any = self._cycle.scope
        scope.setdefault(DEPARTED, []).append(self.leave)

    @property
    def is_over(self) -> bool:
        """Whether it has its answer."""
        return self._future is None or self._future.done()

    def leave(self) -> None:
        """Wait no more, as the client has gone."""
        self._end(Gone)

    def expire(self) -> None:
        """Wait no more, as its time is over."""
        self._end(TimeoutError)

    def refuse(self, refusal: HttpRefusal) -> None:
        """Tell the client of a refusal."""
        self._send(reply(plain_error(refusal), refusal.status, refusal.headers))

    def _end(self, reason):
        if not self.is_over:
            self._reason = reason
            self._future.cancel()

    def _finish(self, future):
        if self._reason is Gone:
            self._record(GONE)
            return
        try:
            if self._reason is not None:
                raise self._reason
            response = reply(content_of(self._value, future.result()))
        except Exception as error:
            self.refuse(refusal_of(error))
        else:
            self._send(response)

    def _send(self, response):
        self._cycle.respond(response.status_code, response.raw_headers, response.body)
        self._record(response.status_code)

    def _record(self, status):
        """Count the request, and let go of all that it holds: `Deadlines` keep it for longer."""
        scope: Any = self._cycle.scope
        self._access.record(scope, status, time.perf_counter() - self._begun)
        scope.pop(DEPARTED, None)
        self._cycle = self._value = self._future = None
