"""A request and its response."""

import asyncio
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from .flow import Flow

FIRST = b"HTTP/1.1 "  # bytes of every response
WITHOUT_BODY = (204, 304)  # statuses


class Cycle(RequestResponseCycle):
    """A request and its response, whose head goes in one write with the first piece of its body.

    It trusts the `Application`: the messages come in order, and headers are valid and have names in
    small letters.
    """

    _head = b""  # that waits for the first piece of the body
    _left = 0  # bytes of the body that content-length promises
    _sent = 0  # bytes of the head that have been sent before
    flow: Flow

    async def run_asgi(self, app: Any) -> None:
        async def until_end(scope, receive, send):
            try:
                await app(scope, receive, send)
            except asyncio.CancelledError:  # the server ends, and the client takes no bytes
                self.disconnected = True
                self.transport.abort()

        await super().run_asgi(until_end)

    async def send(self, message: Any) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.transport.is_closing():  # the client has gone: `Connection` is told later
            self.disconnected = True
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self.response_started, self.waiting_for_100_continue = True, False
            self._head = self._head_of(message["status"], message["headers"])
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self.scope["method"] == "HEAD":
            body = b""
        elif self.chunked_encoding:
            body = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = body if more else body + b"0\r\n\r\n"
        elif self.chunked_encoding is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):  # a file that has changed since
                raise RuntimeError("the body has another length than content-length says")
        if self._head or body:
            self.flow.write(self._head + body)
            self._head = b""
        if not more:
            self._end()

    def respond(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a whole response at once; `flow` must not hold it back."""
        if not self.disconnected:
            self.response_started = True
            self.flow.write(self._head_of(status, headers) + body)
            self._end()

    def send_first(self) -> None:
        """Send the first bytes of the response, unless it has begun."""
        if not (self.response_started or self._sent):
            self._sent, self.waiting_for_100_continue = len(FIRST), False
            self.flow.write(FIRST)

    def _head_of(self, status, headers):
        lines, is_closed = [STATUS_LINE[status][self._sent :]], False
        for name, value in (*self.default_headers, *headers):
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                self.chunked_encoding, self._left = False, int(value)
            elif name == b"connection":
                is_closed = b"close" in value.lower()
        if is_closed:
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        has_body = self.scope["method"] != "HEAD" and status not in WITHOUT_BODY
        knows_chunks = self.scope["http_version"] != "1.0"  # 1.0: until the connection ends
        if self.chunked_encoding is None and has_body and knows_chunks:
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        return b"".join(lines)

    def _end(self):
        self.response_complete = True
        self.message_event.set()
        self.on_response()
