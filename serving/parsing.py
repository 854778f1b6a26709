"""Parse JSON of limited depth and lines of limited length from files and users, and write JSON that
is safe to print."""

import functools
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

RAW = re.compile("[\x7f-\x9f\ud800-\udfff]")
MOST_NESTED = 100  # levels, because code that reads or writes JSON is recursive
MOST_OF_LINE = 10_000_000  # bytes, because a text takes some fifty times its size as tokens
LARGE = re.compile(r"[eE]\+?[0-9]{3}")  # a number beyond float64 has this exponent or 200 digits
DIGITS = 200
MOST_DIGITS = 4300  # of a whole number: Python reads no more
SEPARATORS = ",;|\t"  # of columns
TOO_LONG = f"has more than {MOST_OF_LINE:,} bytes, the most that a line may have"


def utf8_of(content: bytes, path: Any) -> str:
    """Return the text of a file.

    Args:
        content: what the file holds.
        path: path of the file, for errors.

    Raises:
        ValueError: with the line and the byte, if it is not UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: the byte 0x{content[error.start]:02x} is not UTF-8; save the "
            "file as UTF-8."
        ) from error


def about_separators(header: Sequence[str]) -> str:
    """Return what is wrong with a header that is read as one column, because its file is divided by
    another separator than its name says; "" if nothing is."""
    if len(header) == 1 and any(separator in header[0] for separator in SEPARATORS):
        return "columns must be divided by commas"
    return ""


def parse_json(text, **options):
    """Return the content of JSON.

    Args:
        text: a string, or bytes of UTF-8.
        options: of `json.loads`.

    Raises:
        ValueError: if it is not JSON, or is nested over 100 levels deep.
    """
    try:
        if isinstance(text, str) and not text.startswith("\ufeff"):
            content = _decoder(**options).decode(text)
        else:
            content = json.loads(text, **options)
    except RecursionError as error:
        raise ValueError(_too_deep()) from error
    opening = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, opening)) <= MOST_NESTED:  # too few for so many levels
        return content
    level = [content]
    for _ in range(MOST_NESTED + 1):
        level = [part for value in level for part in _inner(value)]
        if not level:
            return content
    raise ValueError(_too_deep())


def parse_request(text: str) -> Any:
    """Return the content of JSON that a response may repeat: all its numbers are finite.

    Raises:
        ValueError: see `parse_json`; or if it holds NaN, Infinity, a number beyond float64, or a
            whole number of too many digits.
    """
    options = {"parse_constant": _finite}
    if LARGE.search(text) or (
        len(text) >= DIGITS and any(part.isdigit() for part in _parts(text, DIGITS // 2))
    ):
        # Only then, calling Python for each number is worthwhile.
        options |= {"parse_float": _finite, "parse_int": _whole}
    return parse_json(text, **options)


def bounded_lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a binary stream, with their ends; only "\\n" ends a line.

    In place of a line of more than `MOST_OF_LINE` bytes None is yielded; it is not held in memory.
    """
    while line := stream.readline(MOST_OF_LINE + 2):
        if len(line.removesuffix(b"\n").removesuffix(b"\r")) <= MOST_OF_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MOST_OF_LINE)
        yield None


def as_json(content, **options):
    """Return JSON text that UTF-8 can encode, without control characters.

    Lone surrogates and control characters are escaped.

    Args:
        content: any content that JSON can represent.
        options: options of `json.dumps`.
    """
    text = _encoder(**options).encode(content)
    if text.isascii() and "\x7f" not in text:
        return text
    return RAW.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@functools.lru_cache(maxsize=16)  # to make one takes longer than a small answer
def _encoder(**options):
    return json.JSONEncoder(ensure_ascii=False, **options)


@functools.lru_cache(maxsize=16)
def _decoder(**options):
    return json.JSONDecoder(**options)


def _inner(value):
    """Return the lists and objects directly inside a value."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return ()
    return [part for part in value if isinstance(part, (dict, list))]


def _finite(text):
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(
            f"its numbers must be finite, and null where one is missing; it has {text[:20]}"
        )
    return number


def _whole(text):
    count = len(text.removeprefix("-"))
    if count > MOST_DIGITS:
        raise ValueError(f"a whole number may have {MOST_DIGITS:,} digits; it has {count:,}")
    return int(text)


def _parts(text, size):
    return (text[start : start + size] for start in range(0, len(text), size))


def _too_deep():
    return f"it is nested over {MOST_NESTED} levels deep"
