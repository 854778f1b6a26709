"""A folder that is written aside and then takes its place, whole or not at all.

Beside `NAME` lie `.NAME.partial-PID` while it is written and `.NAME.replaced-PID` for the moment
between two renames; `serving` waits for that moment to pass. What a killed process left of either
is cleaned up by the next one.
"""

import contextlib
import glob
import os
import shutil


@contextlib.contextmanager
def written_aside(folder, check):
    """A new folder beside `folder` that takes its place when the block ends without an error.

    Args:
        folder: an absolute `Path`.
        check: called first, and again just before what is there is replaced; raises to refuse.
    """
    _recover(folder)
    check()
    made = _make_parents(folder)
    aside = _beside(folder, "partial")
    try:
        aside.mkdir()
        yield aside
        check()
        _swap(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _swap(aside, folder):
    replaced = _beside(folder, "replaced")
    try:
        if folder.exists():
            folder.rename(replaced)
        aside.rename(folder)
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise
    shutil.rmtree(replaced, ignore_errors=True)


def _recover(folder):
    """Undo what a process that was killed left beside the folder."""
    for replaced in _orphans(folder, "replaced"):
        if folder.exists():
            shutil.rmtree(replaced)
        else:
            replaced.rename(folder)
    for partial in _orphans(folder, "partial"):
        shutil.rmtree(partial)


def _make_parents(folder):
    """Make the folders above; returns those that were missing, the deepest first."""
    missing = [parent for parent in folder.parents if not parent.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _beside(folder, what):
    return folder.with_name(f".{folder.name}.{what}-{os.getpid()}")


def _orphans(folder, what):
    """The siblings of that kind whose process has ended; no two processes here have one id."""
    siblings = folder.parent.glob(f".{glob.escape(folder.name)}.{what}-*")
    return [path for path in siblings if not _is_another_process(path.name.rpartition("-")[2])]


def _is_another_process(process_id):
    if not process_id.isdecimal() or int(process_id) == os.getpid():
        return False
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
