"""Handlers of requests as ASGI applications: bounded in size and time, errors in one line."""

import asyncio
import contextlib
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
from .departure import Gone, until_gone
from .events import EventResponse
from .http_refusal import HttpRefusal, as_http
from .log import log

JSON = "application/json"
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


def reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON content as a response, with a new line at its end."""
    return Response(f"{as_json(content, allow_nan=False)}\n".encode(), status, headers, JSON)


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[API] = self._api
        with contextlib.suppress(Gone):
            try:
                response = await self._response(scope, receive)
            except HttpRefusal as refusal:
                response = reply(self._error(refusal), refusal.status, refusal.headers)
            if isinstance(response, EventResponse):
                await response.send_within(self._bounds.timeout, scope, send)
            else:
                await response(scope, receive, send)

    async def _response(self, scope, receive):
        method = scope["method"]
        if method not in self._methods and not (method == "HEAD" and "GET" in self._methods):
            allowed = ", ".join(self._methods)
            raise HttpRefusal(
                405, f"the method must be {allowed}; received {method}", {"allow": allowed}
            )
        reads = method == "POST"
        try:
            async with asyncio.timeout(self._bounds.timeout):
                body = b""
                if reads:
                    body = await read_body(scope, receive, self._bounds.max_body)
                    reads = False
                with until_gone(scope):
                    return await self._handler(Call(scope, body))
        except (HttpRefusal, Gone):
            raise
        except Exception as error:
            if reads and isinstance(error, TimeoutError):
                raise HttpRefusal(408, "the body did not come in time", CLOSES) from error
            refusal = as_http(error)
            if isinstance(error, BundleError):
                log(str(error))
            elif refusal.status == 500:
                traceback.print_exc(file=sys.stderr)
            raise refusal from error
