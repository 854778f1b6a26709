"""Replace files only by complete ones."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def written_aside(path):
    """Yield a path to write to; it replaces `path` when the block ends without an error.

    Until then the file does not change.

    Args:
        path: path of the file.

    Raises:
        OSError: naming `path`, if it can not be written.
    """
    written = aside(path)
    try:
        yield written
        written.replace(path)
    except OSError as error:
        if error.filename != str(written):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        written.unlink(missing_ok=True)


def aside(path):
    """Return the path of a file while it is being written; it has the file's suffix."""
    path = Path(path)
    return path.with_name(f".{path.stem}.partial{path.suffix}")


@contextlib.contextmanager
def replacement(path):
    """Yield a function that writes a text; when the block ends without an error, `path` holds it.

    Until then the file does not change. Pipes and terminals are written to directly.

    Args:
        path: path of the file; None: the text is discarded.

    Raises:
        OSError: before the block, if the file can not be written.
    """
    if path is None:
        yield lambda text: None
        return
    path = os.path.realpath(path)  # a link stays a link
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as stream:
            yield stream.write
        return
    if os.path.exists(path):
        open(path, "ab").close()  # raises if the file may not be written
    with written_aside(path) as written, open(written, "w", encoding="utf-8") as stream:
        yield stream.write
