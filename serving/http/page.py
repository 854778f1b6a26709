"""The page at "/", and the files of bundles for answers in the browser.

GET /, /page/…                     the page, whoever asks: nothing in it is secret
GET /page.json                     which bundles there are
GET /v1/bundles/NAME/files/PATH    the manifest, and files that it names

Clients that take gzip get it, except for weights.
"""

import asyncio
import contextlib
import re
import stat
from pathlib import Path

from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from ..playground import Page
from ..playground.compression import compresses
from ..playground.page import ASSETS, INDEX, entry_of
from .bounds import Bounds
from .compressed_files import CompressedFiles
from .endpoint import Call, reply
from .http_refusal import HttpRefusal
from .served_bundle import ServedBundles

TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
KEPT = ("etag", "vary")  # in an answer that a file has not changed
PART = 2**16  # bytes that a reader takes in time


class PageApi:
    """The handlers of the page.

    Args:
        page: the `Page`.
        bundles: the `ServedBundles`.
        bounds: the server's `Bounds`.
    """

    def __init__(self, page: Page, bundles: ServedBundles, bounds: Bounds):
        self._page, self._bundles, self._bounds = page, bundles, bounds
        self._compressed = CompressedFiles()

    async def index(self, call: Call) -> Response:
        """Give the page."""
        return await self._answer(call, self._page.files[INDEX])

    async def asset(self, call: Call) -> Response:
        """Give a file of the page."""
        path = self._page.files.get(ASSETS + call.path["path"])
        if path is None:
            raise HttpRefusal(404, "the page has no such file")
        return await self._answer(call, path)

    async def content(self, call: Call) -> Response:
        """Tell what the page can ask."""
        bundles = [
            entry_of(
                bundle.name, f"v1/bundles/{bundle.name}/files/", bundle.folder, bundle.manifest
            )
            for bundle in self._bundles
        ]
        return reply(self._page.content(bundles, server=True), headers=HEADERS)

    async def file(self, call: Call) -> Response:
        """Give a file of a bundle."""
        bundle = self._bundles.require(call.path["name"])
        return await self._answer(call, bundle.file(call.path["path"]))

    async def _answer(self, call, path):
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise HttpRefusal(404, "there is no such file")
            response = await self._response(call, path, status)
        except OSError as error:
            raise HttpRefusal(404, "the file is not there now") from error
        if call.header("if-none-match") == response.headers["etag"]:
            headers = {name: response.headers[name] for name in KEPT if name in response.headers}
            return Response(None, 304, HEADERS | headers)
        return response

    async def _response(self, call, path, status):
        kind = TYPES.get(path.suffix, "application/octet-stream")
        seconds = self._bounds.timeout
        plain = _File(path, HEADERS, kind, status, seconds)
        if not compresses(path, status.st_size):
            return plain
        plain.headers["vary"] = "accept-encoding"
        if not _takes_gzip(call.header("accept-encoding") or "") or call.header("range"):
            return plain
        etag = plain.headers["etag"].replace('"', "")
        headers = {"content-encoding": "gzip", "etag": f'"{etag}-gzip"', "vary": "accept-encoding"}
        content = await self._compressed.read(path, status)
        return _Content(content, HEADERS | headers, kind, seconds)


def _takes_gzip(header):
    """Return whether a header Accept-Encoding allows gzip."""
    weights = {}
    for coding in header.lower().split(","):
        name, _, weight = coding.partition(";")
        weights[name.strip()] = weight.replace(" ", "")
    weight = weights.get("gzip", weights.get("*"))
    return weight is not None and not re.fullmatch(r"q=0(\.0*)?", weight)


def _in_time(send, seconds):
    """Return a `send` that gives its reader so long for each part."""

    async def sent(message: Message) -> None:
        async with asyncio.timeout(seconds):
            await send(message)

    return sent


class _File(FileResponse):
    """A file whose reader must take each part of it in time; else he is let go."""

    def __init__(self, path: Path, headers: dict[str, str], kind: str, status, seconds: float):
        super().__init__(path, headers=headers, media_type=kind, stat_result=status)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(TimeoutError):
            await super().__call__(scope, receive, _in_time(send, self._seconds))


class _Content(Response):
    """Bytes whose reader must take each part of them in time; else he is let go."""

    def __init__(self, content: bytes, headers: dict[str, str], kind: str, seconds: float):
        super().__init__(content, headers=headers, media_type=kind)
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = b"" if scope["method"] == "HEAD" else self.body
        send = _in_time(send, self._seconds)
        begin = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        with contextlib.suppress(TimeoutError):
            await send(begin)
            for start in range(0, len(content), PART):
                part = content[start : start + PART]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body"})
