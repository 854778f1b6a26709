"""One process at a time writes a folder: a run, or a bundle."""

import contextlib
import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout, UnixFileLock


class InUseError(ValueError):
    """Another process writes the folder; the message names that process."""


@contextlib.contextmanager
def locked(folder):
    """Keep other processes from writing a folder while the block runs.

    The lock lies beside the folder, as `.NAME.lock`, so that the folder itself may be renamed. The
    system drops the lock of a process that is killed. Folders above that are missing are made; if
    they are still empty at the end, they are removed again.

    Args:
        folder: a path; it need not exist.

    Raises:
        InUseError: if another process holds the lock.
        OSError: if no lock can be made there; the message names the folder.
    """
    resolved = Path(folder).resolve()
    missing = [parent for parent in resolved.parents if not parent.exists()]
    try:
        resolved.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from error
    lock = FileLock(resolved.with_name(f".{resolved.name}.lock"), blocking=False)
    path = Path(lock.lock_file)
    try:
        try:
            lock.acquire()
        except Timeout as error:
            if not path.exists():  # as below /proc, where nobody can make a file
                raise _not_writable(folder, error) from None
            raise InUseError(
                f"{folder}: {_holder(path)} writes it; wait until that process has ended, or "
                "choose another folder."
            ) from None
        except OSError as error:
            raise _not_writable(folder, error) from error
        try:
            if isinstance(lock, UnixFileLock):  # any other kind says by itself who holds it
                path.write_text(f"{os.getpid()}\n{socket.gethostname()}\n", encoding="utf-8")
            yield
        finally:
            if isinstance(lock, UnixFileLock):
                path.unlink(missing_ok=True)  # while it is held: whoever waits opens a new file
            lock.release()
    finally:
        for parent in missing:
            with contextlib.suppress(OSError):  # it is not empty
                parent.rmdir()


def _not_writable(folder, error):
    """Return an error that names the user's folder, and not the lock beside it."""
    reason = error.strerror or "no file can be made beside it"
    return OSError(f"{folder}: can not be written ({reason}); choose another folder.")


def _holder(path):
    """Return the process that a lock file names, in words."""
    try:
        process, host, *_ = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return "another process"
    where = "" if host == socket.gethostname() else f" on {host}"
    return f"process {process}{where}"
