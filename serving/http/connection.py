"""HTTP connections: those that send nothing are closed, and who leaves frees his place."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ..parsing import as_json
from .departure import DEPARTED

IDLE = "seqkeras_idle"  # seconds; an attribute of uvicorn's Config
MOST_HEAD = 65_536  # bytes of a request's first line and headers
TOO_LARGE = f"the head of a request may have {MOST_HEAD} bytes; it has more"


class Connection(HttpToolsProtocol):
    """A connection that must send the whole head of a request in time, and in `MOST_HEAD` bytes.

    uvicorn bounds the time between two requests only (`timeout_keep_alive`), and no bytes.
    """

    _deadline: asyncio.TimerHandle | None = None
    _between = True  # two requests
    _head: int | None = 0  # bytes of a head so far; None in a body
    _piece = 0  # bytes that are parsed now

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_head()
        while data and not self.transport.is_closing():
            if self._between:
                self._head = 0
            most = MOST_HEAD - (self._head or 0)
            piece, data = data[:most], data[most:]
            self._piece = len(piece)
            super().data_received(piece)
            if self._head is not None:
                self._head += len(piece)
                if self._head >= MOST_HEAD:
                    self._refuse()

    def on_message_begin(self) -> None:
        self._between = False
        if self._head is None:  # behind another request in this piece, which does not count
            self._head = -self._piece
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._cancel()
        self._head = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._between = True
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        cycle = self.cycle
        super().connection_lost(exc)
        if cycle is not None and not cycle.response_complete:
            scope: dict = dict(cycle.scope)
            for leave in [*scope.get(DEPARTED, ())]:
                leave()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():  # to close would wait until all is read
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _refuse(self):
        if self.cycle is None or self.cycle.response_complete:
            body = as_json({"error": TOO_LARGE}).encode() + b"\n"
            head = b"content-type: application/json\r\nconnection: close\r\n"
            head += b"content-length: %d\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[431] + head + body)
        self.transport.close()

    def _expect_head(self):
        idle = getattr(self.config, IDLE)
        self._deadline = self.loop.call_later(idle, self.timeout_keep_alive_handler)

    def _cancel(self):
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
