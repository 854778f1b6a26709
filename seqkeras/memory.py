"""Memory that arrays give back, and that the next arrays take."""

import ctypes
import os

__all__ = ["keep_freed_memory"]

# The parameters of glibc's mallopt that are set below, by their numbers in malloc.h
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX, ARENA_MAX = -1, -2, -4, -8
PADDING = 64 * 2**20  # bytes that are asked of the system at a time
MOST = 2**31 - 1  # bytes that stay with the process: the largest of a C int


def keep_freed_memory() -> None:
    """Let freed memory stay with the process, in place of being given back to the system.

    A training step allocates the arrays of the step before anew. By default glibc gives many of
    them back in between, and the system clears each page of the next ones when it is touched first:
    up to half of a step's time, most in virtual machines. After this call the process keeps as much
    memory as it ever had at once.

    Call it before TensorFlow or JAX begins threads. Where users have set glibc's own variables
    (`MALLOC_ARENA_MAX` and others), and in systems without glibc, nothing changes.

    Example:
        >>> from seqkeras.memory import keep_freed_memory
        >>> keep_freed_memory()  # before TensorFlow or JAX is imported
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS; Windows
        return
    set_option(MMAP_MAX, 0)
    set_option(ARENA_MAX, 1)
    set_option(TOP_PAD, PADDING)
    set_option(TRIM_THRESHOLD, MOST)
