"""The bytes that go to a client, who must take some of them in time."""

import asyncio
import socket
import struct
import sys

from uvicorn.protocols.http.flow_control import FlowControl

RESETS = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # SO_LINGER for no time


class Flow(FlowControl):
    """The bytes that go to a client: it is let go if it takes none of them for a while.

    Args:
        transport: where they go.
        loop: the event loop.
        seconds: how long a client may take none.
    """

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float
    ):
        super().__init__(transport)
        self._loop, self._seconds = loop, seconds
        self._written = self._taken = 0  # bytes; those that had been taken when the timer began
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        """Send bytes, as soon as the client takes them."""
        self._written += len(data)
        self._transport.write(data)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.watch()

    def watch(self) -> None:
        """Let the client go if it takes none of the bytes that are left; call it when no more of
        them may come."""
        left = self._transport.get_write_buffer_size()
        if left and self._timer is None:
            self._taken = self._written - left
            self._timer = self._loop.call_later(self._seconds, self._look)

    def stop(self) -> None:
        """Watch no more: the connection has ended."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self):
        self._timer = None
        left = self._transport.get_write_buffer_size()
        if left and self._written - left <= self._taken:
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
            self._transport.abort()  # to close would wait until all is taken, here or in the system
        else:
            self.watch()
