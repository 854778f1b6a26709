"""Handlers of requests as ASGI applications: bounded in size and time, errors in one line."""

import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..manifest import BundleError
from ..parsing import as_json
from .body import CLOSES, read_body
from .bounds import Bounds
from .departure import Deadlines, Gone, until_gone
from .events import EventResponse
from .http_refusal import HttpRefusal, as_http
from .log import log

JSON = b"application/json"
API = "seqkeras.api"  # in a scope: the name of the API that is asked, for metrics


class Call:
    """A request.

    Attributes:
        scope: scope of ASGI.
        body: the bytes.
        path: the parameters of its path.
    """

    def __init__(self, scope: Scope, body: bytes):
        self.scope, self.body = scope, body
        self.path: dict[str, str] = scope.get("path_params", {})

    def header(self, name: str) -> str | None:
        """Return a header's value, or None."""
        key = name.encode()
        return next(
            (value.decode("latin-1") for k, value in self.scope["headers"] if k == key), None
        )


Handler = Callable[[Call], Awaitable[Response]]


class Reply(Response):
    """A response of JSON, whose headers need no preparation.

    Args:
        body: the bytes.
        status: the HTTP status.
        headers: headers beside content-type and content-length; their names are in small letters.
    """

    def __init__(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None):
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [(b"content-length", b"%d" % len(body)), (b"content-type", JSON)]
        if headers:
            self.raw_headers[:0] = [
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
            ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


def reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON content as a response, with a new line at its end."""
    return Reply(f"{as_json(content, allow_nan=False)}\n".encode(), status, headers)


def plain_error(refusal: HttpRefusal) -> Any:
    """Return the content that tells of an error: {"error": line}."""
    return {"error": refusal.message}


class Endpoint:
    """Answers the requests of some paths.

    Args:
        api: a name for metrics.
        handler: takes a `Call`, returns a response.
        bounds: the server's `Bounds`.
        methods: the HTTP methods that it takes.
        error: takes an `HttpRefusal`, returns the JSON content that tells of it.
    """

    def __init__(
        self,
        api: str,
        handler: Handler,
        bounds: Bounds,
        methods: Sequence[str],
        error: Callable[[HttpRefusal], Any] = plain_error,
    ):
        self._api, self._handler, self._bounds = api, handler, bounds
        self._methods, self._error = tuple(methods), error
        self._deadlines = Deadlines(bounds.timeout)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[API] = self._api
        try:
            try:
                response = await self._response(scope, receive)
            except HttpRefusal as refusal:
                response = reply(self._error(refusal), refusal.status, refusal.headers)
            if isinstance(response, EventResponse):
                await response.send_all(scope, send)
            else:
                await response(scope, receive, send)
        except Gone:
            return

    async def _response(self, scope, receive):
        method = scope["method"]
        if method not in self._methods and not (method == "HEAD" and "GET" in self._methods):
            allowed = ", ".join(self._methods)
            raise HttpRefusal(
                405, f"the method must be {allowed}; received {method}", {"allow": allowed}
            )
        reads = method == "POST"
        try:
            with until_gone(scope, self._deadlines):
                body = b""
                if reads:
                    body = await read_body(scope, receive, self._bounds.max_body)
                    reads = False
                return await self._handler(Call(scope, body))
        except (HttpRefusal, Gone):
            raise
        except Exception as error:
            if reads and isinstance(error, TimeoutError):
                raise HttpRefusal(408, "the body did not come in time", CLOSES) from error
            raise refusal_of(error) from error


def refusal_of(error: Exception) -> HttpRefusal:
    """Return the refusal that tells a client of an error; the log has it too if it is ours."""
    refusal = as_http(error)
    if isinstance(error, BundleError):
        log(str(error))
    elif refusal.status == 500:
        traceback.print_exception(error, file=sys.stderr)
    return refusal
