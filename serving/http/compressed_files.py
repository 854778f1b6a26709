"""Files in gzip, each compressed once."""

import asyncio
import os
from pathlib import Path

from ..playground.compression import compressed


class CompressedFiles:
    """Files in gzip, kept in memory; a file that was replaced is compressed anew."""

    def __init__(self) -> None:
        self._tasks: dict[Path, tuple[tuple[int, ...], asyncio.Task[bytes]]] = {}

    async def read(self, path: Path, status: os.stat_result) -> bytes:
        """Return the compressed bytes of a file, which a thread makes.

        Raises:
            OSError: if it can not be read.
        """
        state = status.st_ino, status.st_mtime_ns, status.st_size
        known, task = self._tasks.get(path, (None, None))
        if task is None or known != state:
            task = asyncio.create_task(asyncio.to_thread(compressed, path))
            self._tasks[path] = state, task
        try:
            return await asyncio.shield(task)
        except OSError:
            self._tasks.pop(path, None)
            raise
