"""The body of a request: bounded, UTF-8, JSON."""

from typing import Any

from starlette.types import Receive, Scope

from ..checks import shown
from ..parsing import parse_request
from .departure import Gone
from .http_refusal import HttpRefusal

CLOSES = {"connection": "close"}  # the rest of the body is not read


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        HttpRefusal: if it has over `most` bytes, or is compressed.
        Gone: if the client has gone.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and len(value) < 20 and int(value) > most:
            raise too_large(most)
        if name == b"content-encoding" and value.lower() != b"identity":
            raise HttpRefusal(415, "the body must not be compressed", CLOSES)
    message = await receive()
    body = message.get("body", b"")
    parts, size = [body], len(body)
    while message.get("more_body"):
        if size > most:
            raise too_large(most)
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if message["type"] == "http.disconnect":
        raise Gone
    if size > most:
        raise too_large(most)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(most: int) -> HttpRefusal:
    """Return the refusal of a body of over `most` bytes."""
    message = f"a body may have {most:,} bytes; it has more: ask for less at once"
    return HttpRefusal(413, message, CLOSES)


def text_of(body: bytes) -> str:
    """Return a body as text.

    Raises:
        HttpRefusal: if it is not UTF-8.
    """
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise HttpRefusal(400, f"the body must be UTF-8; received {byte}") from error


def json_of(body: bytes) -> Any:
    """Return the content of a body of JSON.

    Raises:
        HttpRefusal: if it is none.
    """
    text = text_of(body).removeprefix("\ufeff")  # as editors on Windows write it
    try:
        return parse_request(text)
    except ValueError as error:
        received = shown(text) if text else "nothing"
        raise HttpRefusal(400, f"the body must be JSON; received {received}: {error}") from error


def object_of(body: bytes, known: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Return the content of a body that is a JSON object.

    Args:
        body: the bytes.
        known: the names that it may have; None for any.

    Raises:
        HttpRefusal: if it is none.
    """
    content = json_of(body)
    if not isinstance(content, dict):
        raise HttpRefusal(400, f"the body must be a JSON object; received {shown(content)}")
    for name in content if known is not None else ():
        if name not in (known or ()):
            raise HttpRefusal(
                400, f"the body must have {', '.join(known or ())} only; it has {shown(name)}"
            )
    return content
