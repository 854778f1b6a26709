"""The text of a user's file, plain or compressed by gzip, and what is wrong with it in a line."""

import contextlib
import copy
import gzip
import io
import os
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from seqkeras.serving.parsing import MOST_OF_LINE, TOO_LONG, utf8_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMPRESSED = ".gz"
BYTES_AT_ONCE = 2**20  # of a file that is read line by line
LINES_AT_ONCE = 2**20  # characters of a text that are split into lines at once
HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # a surrogate without the other one


class DataError(ValueError):
    """A file of data that can not be used; the message names the file and the line.

    Example:
        >>> from seqkeras.data import read_text
        >>> read_text("missing.txt")
        Traceback (most recent call last):
            ...
        seqkeras.data.texts.DataError: missing.txt: no such file.
    """


def read_text(path: Path | str, in_lines: bool = True) -> str:
    """Return the text of a file in UTF-8, with a byte order mark or without; a .gz is unpacked.

    Args:
        path: path of the file.
        in_lines: whether its lines are texts, or rows with texts, so that none may be too long.

    Returns:
        The text, without the byte order mark.

    Raises:
        DataError: if there is no file, it can not be read or unpacked, is not UTF-8, or holds
            nothing; or if a line has more than `seqkeras.serving.parsing.MOST_OF_LINE` bytes.

    Example:
        >>> import gzip, pathlib
        >>> from seqkeras.data import read_text
        >>> _ = pathlib.Path("texts.txt.gz").write_bytes(gzip.compress("café\\n".encode()))
        >>> read_text("texts.txt.gz")
        'café\\n'
    """
    path = Path(path)
    with _opened(path) as file:
        content = file.read().removeprefix(BYTE_ORDER_MARK)
    if in_lines:
        _require_short_lines(path, content)
    try:
        text = utf8_of(content, path)
    except ValueError as error:
        raise DataError(str(error)) from error
    if not text.strip():
        raise DataError(f"{path}: the file is empty.")
    return text


def read_lines(path: Path | str) -> Iterator[str]:
    """Yield the lines of a file, which `read_text` reads as a whole, with their ends; the last one
    gets an end where it has none.

    Args:
        path: path of the file.

    Raises:
        DataError: as `read_text` raises it, but only where it comes to a line that can not be read.

    Example:
        >>> import pathlib
        >>> from seqkeras.data.texts import read_lines
        >>> _ = pathlib.Path("texts.txt").write_text("one\\ntwo")
        >>> [*read_lines("texts.txt")]
        ['one\\n', 'two\\n']
    """
    for number, text in enumerate(_read_blocks(Path(path))):
        if not number and "\n" not in text and "\r" in text.strip():
            raise DataError(
                f"{path}: its lines end in CR alone; save it with line ends of Unix or Windows."
            )
        yield from io.StringIO(text if text.endswith("\n") else f"{text}\n", newline="\n")


class TextFile:
    """What `read_text` returns of a file, or its beginning, read anew whenever it is asked for.

    Iterating gives its text in parts of several lines.

    Args:
        path: path of the file.

    Raises:
        DataError: as `read_text` raises it; and where the file has changed since.

    Example:
        >>> import pathlib
        >>> from seqkeras.data.texts import TextFile
        >>> _ = pathlib.Path("texts.txt").write_text("one\\ntwo\\n")
        >>> text = TextFile("texts.txt")
        >>> len(text), [*text], [*text.cut(5)], text.rest(5)
        (8, ['one\\ntwo\\n'], ['one\\nt'], 'wo\\n')
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._size = sum(map(len, _read_blocks(self.path)))
        self._state = _state(self.path.stat())

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        left = self._size
        for block in self._blocks():
            if not left:
                break
            part = block[:left]
            yield part
            left -= len(part)

    def cut(self, size: int) -> "TextFile":
        """Return its first characters, so many."""
        some = copy.copy(self)
        some._size = size
        return some

    def rest(self, size: int) -> str:
        """Return the text of the file without its first characters, so many."""
        parts = []
        for block in self._blocks():
            parts.append(block[size:])
            size = max(size - len(block), 0)
        return "".join(parts)

    def _blocks(self):
        if _state(self.path.stat()) != self._state:
            raise _changed(self.path)
        return _read_blocks(self.path)


def parts_of(text: str | TextFile) -> Iterable[str]:
    """Return the parts of a text: a string itself, or parts of a file, which end with lines."""
    return [text] if isinstance(text, str) else text


def _read_blocks(path):
    """Yield the text of a file in parts that end with lines."""
    number, is_empty = 1, True
    with _opened(path) as file:
        before = _state(os.fstat(file.fileno()))
        if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
            file.seek(0)
        while content := file.read(BYTES_AT_ONCE):
            begin = content.rfind(b"\n") + 1
            if begin < len(content):
                content += file.readline(MOST_OF_LINE + 1)
                if len(content.removesuffix(b"\n")) - begin > MOST_OF_LINE:
                    raise too_long(path, number + content.count(b"\n", 0, begin))
            try:
                text = content.decode()
            except UnicodeDecodeError as error:
                read_text(path)  # tells what is wrong
                raise _changed(path) from error
            is_empty = is_empty and not text.strip()
            if is_empty and not file.peek(1):
                break
            yield text
            number += content.count(b"\n")
        if _state(os.fstat(file.fileno())) != before:
            raise _changed(path)
    if is_empty:
        raise DataError(f"{path}: the file is empty.")


def _state(status):
    """Return what tells that a file has changed."""
    return status.st_size, status.st_mtime_ns


def _changed(path):
    return DataError(f"{path}: has changed while it was read; start again.")


@contextlib.contextmanager
def _opened(path):
    """Open a file of bytes, unpack a .gz; raise a DataError where it can not be read within."""
    if not path.is_file():
        raise DataError(f"{path}: no such file.")
    opened = gzip.open if path.suffix.lower() == COMPRESSED else open
    try:
        with opened(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: not a whole gzip file: {str(error).rstrip('.')}.") from error
    except OSError as error:
        raise DataError(f"{path}: can not be read: {error.strerror}.") from error


def first_line(path: Path | str) -> str:
    """Return the first line of a file, without its end, as `read_text` reads it; "" if it can not
    be read, or is too long."""
    path = Path(path)
    opened = gzip.open if path.suffix.lower() == COMPRESSED else open
    try:
        with opened(path, "rb") as file:
            line = file.readline(MOST_OF_LINE).removeprefix(BYTE_ORDER_MARK).decode()
    except (EOFError, OSError, UnicodeDecodeError, zlib.error):
        return ""
    return line.rstrip("\r\n") if line.endswith("\n") else ""


def _require_short_lines(path, content):
    """Raise a DataError if a line is too long."""
    start = 0
    while len(content) - start > MOST_OF_LINE:
        end = content.rfind(b"\n", start, start + MOST_OF_LINE + 1)
        if end < 0:
            raise too_long(path, content.count(b"\n", 0, start) + 1)
        start = end + 1


def too_long(path: Path | str, line: int) -> "DataError":
    """Return the DataError of a line that is too long."""
    return DataError(
        f"{path}, line {line}: the line {TOO_LONG}; cut it into several, or remove it."
    )


def suffix_of(path: Path | str) -> str:
    """Return the file suffix in lower case, without a trailing .gz."""
    return Path(Path(path).name.lower().removesuffix(COMPRESSED)).suffix


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends; the end of the last line begins no other line.

    `str.splitlines` would also end lines at characters within a text, such as U+2028.

    Args:
        text: a string.

    Returns:
        A list of strings.

    Example:
        >>> from seqkeras.data import lines_of
        >>> lines_of("one\\r\\ntwo\\n\\nthree\\n")
        ['one', 'two', '', 'three']
    """
    return [*each_line(text)]


def each_line(text: str) -> Iterator[str]:
    """Yield the lines of a text as `lines_of` returns them, without a list of all."""
    start = 0
    while start < len(text):
        end = text.rfind("\n", start, start + LINES_AT_ONCE)
        if end < 0:
            end = text.find("\n", start)
        if end < 0:
            end = len(text)
        for line in text[start:end].split("\n"):
            yield line.removesuffix("\r")
        start = end + 1


def open_text(path: Path | str) -> TextIO:
    """Return a file that is read line by line, a .gz unpacked; bytes that are not UTF-8 are
    replaced."""
    opened: Any = gzip.open if Path(path).suffix.lower() == COMPRESSED else open
    return opened(path, "rt", encoding="utf-8", errors="replace", newline="")


def holds_half_a_character(text: str) -> bool:
    """Return whether a text holds a lone surrogate, which UTF-8 can not encode."""
    return not text.isascii() and HALF_A_CHARACTER.search(text) is not None


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character: a tokenizer may find no token in it."""
    return all(unicodedata.category(character)[0] in "CZ" for character in text)
