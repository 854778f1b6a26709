"""HTTP connections: a silent one is closed, and a client that leaves frees its place.

A client that sends no more may still read (RFC 9112, section 9.6), or have closed the connection:
TCP tells both alike, and uvicorn takes both for gone. Here the client gets the first bytes of its
answer at once, which come back as an error if it has closed the connection.
"""

import asyncio
import contextlib
import math
import socket
import urllib.parse
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .body import CLOSES
from .cycle import Cycle
from .departure import DEPARTED
from .flow import Flow
from .http_refusal import HttpRefusal

BOUNDS = "seqkeras_bounds"  # the server's `Bounds`: an attribute of uvicorn's Config
MOST_HEAD = 65_536  # bytes of a request's first line and headers
TOO_LARGE = f"the head of a request may have {MOST_HEAD} bytes; it has more"
REST = 0.1  # seconds in which the rest of a small body may come without a task that waits for it
LOOK = 0.1  # seconds between two looks whether what was sent came back
NO_REQUEST = {"type": "http", "http_version": "1.1", "method": "-", "path": "-"}
OF_UPGRADE = frozenset({b"upgrade", b"http2-settings"})  # headers, and words of `connection`


class Connection(HttpToolsProtocol):
    """A connection that must send the whole head of a request in time, and in `MOST_HEAD` bytes.

    uvicorn bounds the time between two requests only (`timeout_keep_alive`), and no bytes; and it
    sets and cancels a timer for each request. Here a timer is moved when it fires too early.

    What is no HTTP is refused behind the answers to the requests before it. Then, and behind a
    refusal of a body that has not been read, the client is told the end, and what it still sends is
    left out for a while: otherwise the system may discard the answer (RFC 9112, section 9.6).
    """

    flow: Flow
    _due = math.inf  # when the connection is closed if nothing more comes, by the loop's clock
    _timer: asyncio.TimerHandle | None = None
    _awaits_head = False  # whether the whole head of a request must come in time
    _between = True  # whether no request is half read
    _head: int | None = 0  # bytes of a head so far; None in a body
    _piece = 0  # bytes that are parsed now
    _new: Any = None  # the `Cycle` of a request whose head has come, and that has not begun
    _latest: float | None = None  # when it begins; None: as soon as it is known what it is
    _answered: Any = None  # the `Cycle` of the request whose turn it is
    _refusal: HttpRefusal | None = None  # of what is no HTTP
    _ends = False  # whether nothing more is read
    _half = False  # whether the client sends no more

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._bounds = getattr(self.config, BOUNDS)
        self.flow = Flow(transport, self.loop, self._bounds.timeout)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._ends:
            return
        if not self._awaits_head:
            self._due = math.inf
        while data and not self._ends:
            if self._between:
                self._head = 0
            most = MOST_HEAD - (self._head or 0)
            piece, data = data[:most], data[most:]
            self._piece = len(piece)
            self._parse(piece)
            if self._new is not None:
                self._begin(self._new)
            if self._head is not None:
                self._head += len(piece)
                if self._head >= MOST_HEAD:
                    self._refusal = self._refusal or HttpRefusal(431, TOO_LARGE, CLOSES)
            if self._refusal is not None:
                self._refuse(self._refusal)
        if self._due == math.inf and not self._is_busy:
            self._await_head()

    def _parse(self, data):
        """Parse bytes. A request that asks for another protocol too, as Java's for HTTP/2, is read
        as if it did not: the parser would leave out its body."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            is_ours = isinstance(error, httptools.HttpParserCallbackError)
            reason = "Invalid URL" if is_ours else error
            self._refusal = HttpRefusal(400, f"the request must be HTTP/1.1: {reason}", CLOSES)
        except httptools.HttpParserUpgrade as upgrade:
            if self._asks_for_upgrade:
                [end] = upgrade.args
                head = _without_upgrade(self.parser.get_method(), self.url, self.headers)
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn
                self._parse(head + data[end:])

    @property
    def _asks_for_upgrade(self):
        return (
            self.parser.should_upgrade()
            and self.parser.get_method() != b"CONNECT"
            and any(name == b"upgrade" for name, _ in self.headers)
        )

    def on_message_begin(self) -> None:
        self._between = False
        if self._head is None:  # behind another request in this piece, which does not count
            self._head = -self._piece
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._asks_for_upgrade:
            return
        url = httptools.parse_url(self.url)
        self._due, self._awaits_head = math.inf, False
        self._head = None
        version = self.parser.get_http_version()
        raw_path = url.path or b"/"
        path = raw_path.decode("ascii")
        self.scope |= {
            "http_version": version,
            "method": self.parser.get_method().decode("ascii"),
            "path": urllib.parse.unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": url.query or b"",
        }
        is_busy = self._is_busy
        self.cycle = self._cycle(
            self.scope,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            expects_100=version != "1.0" and self.expect_100_continue,
        )
        if is_busy:  # a request behind another one that is not answered yet
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))
        else:
            self._new, self._latest = self.cycle, None

    def _cycle(self, scope, keep_alive, expects_100=False):
        """Return a `Cycle`."""
        return Cycle(
            scope=scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=expects_100,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )

    def on_message_complete(self) -> None:
        if self._asks_for_upgrade:
            return
        self._between = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        self.flow.watch()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if not self._answered.keep_alive:
            self._end()
        elif self.pipeline:
            self._answered, app = self.pipeline.pop()
            self._start_asgi_task(self._answered, app)
        else:
            self._close_in(self.timeout_keep_alive)

    def _end(self):
        """End the connection; while the client may send something, only in this direction."""
        self._ends = True
        if self._half or (self._between and self._refusal is None):
            self.transport.close()
            return
        with contextlib.suppress(OSError):  # the client has ended it
            self.transport.write_eof()
        self._close_in(self._bounds.idle)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether the connection goes on: until all requests that came are answered."""
        if not self._is_busy or not (self._between or self._ends):
            return False
        self._half, self.cycle.keep_alive = True, False
        self._answered.send_first()
        self.loop.call_later(LOOK, self._look_who_left)
        return True

    def _look_who_left(self):
        """Let the client go if it has closed the connection."""
        if self.transport.is_closing():
            return
        connection = self.transport.get_extra_info("socket")
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        else:
            self.loop.call_later(LOOK, self._look_who_left)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.flow.stop()
        cycle = self._answered
        super().connection_lost(exc)
        if self._new is not None:
            self._start_asgi_task(self._new, self.app)  # which records that its client has gone
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # uvicorn tells only the last request that has come
            cycle.message_event.set()
            scope: dict = dict(cycle.scope)
            for leave in [*scope.get(DEPARTED, ())]:
                leave()

    def timeout_keep_alive_handler(self) -> None:
        if self._new is not None:
            self._begin(self._new)
        elif self.transport.get_write_buffer_size():  # to close would wait until all is read
            self.flow.watch()
            self._close_in(self.timeout_keep_alive)
        else:
            super().timeout_keep_alive_handler()

    @property
    def _is_busy(self):
        return self.cycle is not None and not self.cycle.response_complete

    def _begin(self, cycle):
        """Let the application answer a request, without a task where it can."""
        if cycle.more_body and (self._refusal is not None or self._may_wait(cycle)):
            return
        self._new, self._answered = None, cycle
        if cycle.more_body or not self.app.direct.begin(cycle):
            self._start_asgi_task(cycle, self.app)

    def _may_wait(self, cycle):
        """Return whether the rest of a request's body may come before it begins."""
        now = self.loop.time()
        if self._latest is None:
            self._latest = now + REST * self.app.direct.awaits(cycle)
        if now < self._latest:
            self._close_in(self._latest - now)
            return True
        return False

    def _refuse(self, refusal):
        """Refuse what is no HTTP, behind the requests before it."""
        self._ends, before = True, self._answered
        if self._head is None:  # a body
            refused = self.cycle
            if self.pipeline:
                self.pipeline.popleft()
        else:
            scope = NO_REQUEST | {"client": self.client}
            self.cycle = refused = self._cycle(scope, keep_alive=False)
        if refused.response_started:
            self.transport.close()
            return

        async def answer(scope, receive, send):
            self.app.direct.refuse(refused, refusal)

        self._new = None
        if before is None or before.response_complete:
            self._answered = refused
        if self._answered is refused:
            self.app.direct.refuse(refused, refusal)
        else:
            self.pipeline.appendleft((refused, answer))

    def _await_head(self):
        self._awaits_head = True
        self._close_in(self._bounds.idle)

    def _close_in(self, seconds):
        """Close the connection after these seconds, unless `_due` is another time by then."""
        self._due = self.loop.time() + seconds
        if self._timer is None or self._timer.when() > self._due:
            self._set_timer()

    def _set_timer(self):
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(self._due, self._look)

    def _look(self):
        """Close the connection, or wait on."""
        self._timer = None
        if self._due <= self.loop.time():
            self.timeout_keep_alive_handler()
        elif self._due < math.inf:
            self._set_timer()


def _without_upgrade(method, url, headers):
    """Return the head of a request of HTTP/1.1 that asks for no other protocol."""
    lines = [b"%b %b HTTP/1.1\r\n" % (method, url)]
    for name, value in headers:
        if name in OF_UPGRADE:
            continue
        if name == b"connection":
            words = [word.strip() for word in value.split(b",")]
            value = b", ".join(word for word in words if word.lower() not in OF_UPGRADE)
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join([*lines, b"\r\n"])
