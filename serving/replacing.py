"""A file that is replaced when what takes its place is whole."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def written_aside(path):
    """Yield a path to write to; it takes the place of `path` when the block ends without an error.

    Until then the file stays as it was.

    Args:
        path: of the file.
    """
    written = aside(path)
    try:
        yield written
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def aside(path):
    """Return where a file lies while it is being written; its name ends as the file's does."""
    path = Path(path)
    return path.with_name(f".{path.stem}.partial{path.suffix}")


@contextlib.contextmanager
def replacement(path):
    """Yield a function that writes a text; when the block ends without an error, `path` has it.

    Until then the file stays as it was. What is no file, as a pipe or a terminal, is written to.

    Args:
        path: of the file; None: what is written goes nowhere.

    Raises:
        OSError: before the block, if the file can not be written.
    """
    if path is None:
        yield lambda text: None
        return
    path = os.path.realpath(path)  # a link stays one
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as stream:
            yield stream.write
        return
    if os.path.exists(path):
        open(path, "ab").close()  # a file that may not be written is refused too
    with written_aside(path) as written:
        try:
            stream = open(written, "w", encoding="utf-8")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
        with stream:
            yield stream.write
