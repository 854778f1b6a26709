"""A file that is replaced when what takes its place is whole."""

import contextlib
import os


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
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        stream = open(aside, "x", encoding="utf-8")  # noqa: SIM115 (closed below, then renamed)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    try:
        with stream:
            yield stream.write
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
