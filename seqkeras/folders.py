"""A folder that is written under a temporary name, then renamed: complete or not at all.

Beside `NAME` lie `.NAME.lock` and `.NAME.partial-PID` while it is written. The two folders exchange
their names in a single step. On a file system that can not do that, `.NAME.replaced-PID` lies there
for the moment between two renames; `serving` waits for that moment to pass. What a killed process
left is cleaned up by the next one.
"""

import contextlib
import glob
import os
import shutil

from seqkeras.exchanging import exchange
from seqkeras.locking import locked


@contextlib.contextmanager
def written_aside(folder, check):
    """Yield a new folder beside `folder` that takes its place when the block ends without an error.

    Args:
        folder: an absolute `Path`.
        check: called first, and again just before the folder is replaced; raises to refuse.

    Raises:
        InUseError: if another process writes that folder.
    """
    with locked(folder):
        _recover(folder)
        check()
        aside = _beside(folder, "partial")
        try:
            aside.mkdir()
            yield aside
            check()
            _swap(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def identity(folder):
    """Return the identity of a folder, which its replacement does not share; None if missing."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _swap(aside, folder):
    if not folder.exists():
        aside.rename(folder)
        return
    if exchange(aside, folder):
        return
    replaced = _beside(folder, "replaced")
    try:
        folder.rename(replaced)
        aside.rename(folder)
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise
    finally:
        if folder.exists():
            shutil.rmtree(replaced, ignore_errors=True)


def _recover(folder):
    """Clean up after a killed process; no process writes the folder now."""
    for replaced in _left(folder, "replaced"):
        if folder.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(folder)
    for partial in _left(folder, "partial"):
        shutil.rmtree(partial)


def _beside(folder, what):
    return folder.with_name(f".{folder.name}.{what}-{os.getpid()}")


def _left(folder, what):
    return folder.parent.glob(f".{glob.escape(folder.name)}.{what}-*")
