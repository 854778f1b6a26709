"""Exchange the names of two folders in a single step, if the system can do that."""

import ctypes
import errno
import os
import sys

HERE = {"linux": -100, "darwin": -2}  # AT_FDCWD: relative paths begin at the working folder
SWAP = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # to the system, or to its file system


def exchange(first, second):
    """Exchange two folders; neither path is missing at any moment.

    Returns:
        Whether they were exchanged; False if the system or the file system has no such call.

    Raises:
        OSError: if there is such a call, and it fails.

    Reference: renameat2(2) of Linux, renameatx_np(2) of macOS.
    """
    name = {"linux": "renameat2", "darwin": "renameatx_np"}.get(sys.platform)
    rename = name and getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if not rename:
        return False
    directory = HERE[sys.platform]
    if rename(directory, os.fsencode(first), directory, os.fsencode(second), SWAP) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), os.fspath(first), None, os.fspath(second))
