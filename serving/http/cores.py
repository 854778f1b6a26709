"""The cores of a machine, for the threads and the processes of a server.

Operations of a small graph take less time than it takes to divide them among threads, and the event
loop needs a core too. With 64 clients a request for a date, whose graphs have 0.7 MB, took 421 us
of processor time with two threads, and 366 with one (two cores).
"""

import os
from collections.abc import Iterable
from pathlib import Path

from ..manifest import Manifest
from ..opening import FLOAT32

MIB = 2**20
WORTH = 4 * MIB  # bytes of weights that are worth a thread
PROCESS = 2**28  # bytes of memory of a process, without weights
HELD = 2  # times its size on disk that a weight takes in memory while a graph is opened
MEMORY = "/proc/meminfo"
CONTAINER = "/sys/fs/cgroup"  # what a container may use, where there is one: cgroup v2


def count_cores() -> int:
    """Return how many cores this process may use, by its affinity and its container."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    time = _of_container("cpu.max")  # in each period, and the period; "max": no limit
    if len(time) == 2 and time[0].isdecimal():
        count = min(count, max(-(-int(time[0]) // int(time[1])), 1))
    return count


def weights_of(manifest: Manifest, precision: str | None) -> int:
    """Return the bytes of the graphs of a bundle in a precision, with their weights."""
    graphs = dict(manifest.graphs)
    if precision not in (None, FLOAT32) and precision in manifest.precisions:
        graphs |= manifest.precisions[precision].graphs
    files = {file for graph in graphs.values() for file in graph.files}
    return sum(manifest.files[file].bytes for file in files if file in manifest.files)


def threads_for(weights: int, cores: int) -> int:
    """Return how many threads an operation of a graph with these bytes of weights is worth."""
    return max(1, min(-(-weights // WORTH), cores))


def processes_for(weights: Iterable[int], cores: int, memory: int | None) -> int:
    """Return how many processes can serve bundles with these bytes of weights side by side.

    Args:
        weights: the bytes of each bundle.
        cores: how many there are.
        memory: the bytes that are free; None if that is not known.
    """
    sizes = [*weights]
    count = cores // max(threads_for(size, cores) for size in sizes)
    if memory is not None:
        count = min(count, memory // (PROCESS + HELD * sum(sizes)))
    return max(count, 1)


def cache_bytes_for(asked: int | None, memory: int | None, sharers: int) -> int | None:
    """Return the bytes of caches of each bundle in each process; None for no limit.

    Args:
        asked: MiB of all together; None for half of the memory.
        memory: the bytes that are free; None if that is not known.
        sharers: bundles times processes.
    """
    if asked is not None:
        return asked * MIB // sharers
    return None if memory is None else max(memory // 2 // sharers, 1)


def free_memory() -> int | None:
    """Return the bytes of memory that are free on this machine, and in its container; None where
    the system does not tell."""
    told = (_free_on_machine(), _free_in_container())
    return min((size for size in told if size is not None), default=None)


def _free_on_machine():
    try:
        with open(MEMORY, encoding="ascii") as lines:
            fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def _free_in_container():
    """Return the bytes up to the container's limit, None without one; files that are only cached
    count as free."""
    most, used = _of_container("memory.max"), _of_container("memory.current")
    if not (most and used and most[0].isdecimal()):
        return None
    words = _of_container("memory.stat")
    cached = dict(zip(words[::2], words[1::2])).get("inactive_file", 0)
    return max(int(most[0]) - int(used[0]) + int(cached), 0)


def _of_container(name):
    """Return the words of a file of the container; none if there is no such file."""
    try:
        return Path(CONTAINER, name).read_text(encoding="ascii").split()
    except OSError:
        return []
