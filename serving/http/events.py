"""Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from starlette.responses import Response
from starlette.types import Scope, Send

from ..parsing import as_json
from .departure import until_gone
from .http_refusal import HttpRefusal, as_http

ENDING = HttpRefusal(503, "the server ends: ask again")
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}  # proxies must not hold it back


def event(content: Any, name: str | None = None) -> bytes:
    """Return an event of JSON content."""
    return raw_event(as_json(content), name)


def raw_event(data: str, name: str | None = None) -> bytes:
    """Return an event of one line of data."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data}\n\n".encode()


class EventResponse(Response):
    """Sends events as they come.

    Args:
        pieces: the events; they are closed at the end.
        error: takes a refusal, returns the event that tells of it.
    """

    media_type = "text/event-stream"

    def __init__(self, pieces: AsyncGenerator[bytes], error: Callable[[HttpRefusal], bytes]):
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._pieces, self._error = pieces, error
        self._first: bytes | None = None

    async def begin(self) -> None:
        """Wait for the first event, so that a refusal of the whole is no event."""
        self._first = await anext(self._pieces)

    async def send_all(self, scope: Scope, send: Send) -> None:
        """Send all events.

        Args:
            scope, send: scope and send of ASGI.

        Raises:
            Gone: if the client goes, or is let go because it takes no events; see `Flow`.
        """

        async def sent(body, more=True):
            await send({"type": "http.response.body", "body": body, "more_body": more})

        async with contextlib.aclosing(self._pieces):
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            try:
                with until_gone(scope):
                    await sent(self._first or b"")
                    async for body in self._told():
                        await sent(body)
            except asyncio.CancelledError:  # uvicorn's, as the time to finish is over
                await sent(self._error(ENDING))
            await sent(b"", more=False)

    async def _told(self):
        try:
            async for body in self._pieces:
                yield body
        except Exception as error:
            yield self._error(as_http(error))


async def events(
    pieces: AsyncGenerator[bytes], error: Callable[[HttpRefusal], bytes]
) -> EventResponse:
    """Return the response that sends events; see `EventResponse`."""
    response = EventResponse(pieces, error)
    await response.begin()
    return response
