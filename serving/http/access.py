"""The checks and records of every request: Host, bearer token, metrics, access log."""

import asyncio
import hmac
import sys
import time
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..checks import shown
from ..printing import in_line, printable
from .endpoint import API, plain_error, reply
from .hosts import is_asked_by
from .http_refusal import HttpRefusal
from .metrics import Metrics

# For probes, and for the page, which asks for the token.
PROBES = frozenset({"/v2/health/live", "/v2/health/ready"})
OPEN = PROBES | {"/", "/index.html"}
OPEN_BELOW = "/page/"
WITHOUT_TOKEN = HttpRefusal(
    401,
    "the header Authorization must be Bearer and the server's token",
    {"www-authenticate": "Bearer"},
)
MOST_SHOWN = 300  # characters of a path
GONE = 499  # the log's status of a client that has gone, as nginx writes it


class Access:
    """An ASGI application before another.

    Args:
        app: the other.
        metrics: the server's `Metrics`.
        token: the token that clients must have; None for none.
        log: whether a line of each request is written to standard error.
        hosts: names by which clients ask, beside loopback names; None for any name.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        token: str | None,
        log: bool,
        hosts: Sequence[str] | None = None,
    ):
        self._app, self._metrics, self._log = app, metrics, log
        self._hosts = hosts
        self._lines: list[str] = []
        self._header = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), GONE

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            refusal = self.refusal(scope)
            if refusal is None:
                await self._app(scope, receive, counted)
            else:
                response = reply(plain_error(refusal), refusal.status, refusal.headers)
                await response(scope, receive, counted)
        finally:
            self.record(scope, status, time.perf_counter() - begin)

    def record(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request that has been answered, and log it."""
        self._metrics.request(scope.get(API, "other"), status, seconds)
        if self._log:
            self._write(_line(scope, status, seconds))

    def _write(self, line):
        """Write a line together with the others of this turn of the event loop."""
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        self._lines.append(line)

    def _flush(self):
        text = "".join(self._lines)
        self._lines.clear()
        sys.stderr.write(text)
        sys.stderr.flush()

    def refusal(self, scope: Scope) -> HttpRefusal | None:
        """Return why a request is refused, or None."""
        path = scope["path"]
        if self._hosts is not None and path not in PROBES:
            for name, value in scope["headers"]:
                if name == b"host" and not is_asked_by(value.decode("latin-1"), self._hosts):
                    return _other_host(value.decode("latin-1"))
        if self._header is None or path in OPEN or path.startswith(OPEN_BELOW):
            return None
        if scope["method"] == "OPTIONS":
            return None
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        return None if hmac.compare_digest(header, self._header) else WITHOUT_TOKEN


def _other_host(host):
    return HttpRefusal(
        421,
        "the header Host must be localhost, a loopback address or a name of --allow-host; received "
        f"{shown(host)}",
    )


def _line(scope, status, seconds):
    client = scope.get("client")
    path = in_line(printable(scope["path"][:MOST_SHOWN]))
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    address = client[0] if client else "-"
    return f'{now} {address} "{scope["method"]} {path}" {status} {seconds * 1000:.1f} ms\n'
