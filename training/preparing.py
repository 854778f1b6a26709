"""Records of a corpus, made by several processes."""

import concurrent.futures
import multiprocessing
import signal
import time
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from seqkeras.data.token_records import write_shard
from seqkeras.runs import RunError
from seqkeras.training.console import console, progress_bar

SECONDS_PER_LINE = 30  # where there is no bar, at least


def prepare(folder: Path | str, missing: Sequence[int], processes: int) -> Any:
    """Make the shards that are missing.

    Args:
        folder: folder of `seqkeras.data.token_records.begin_records`.
        missing: the numbers of shards.
        processes: how many work at once.

    Raises:
        DataError: if a file can not be read.
        RunError: if a process was lost.
    """
    said = time.monotonic()
    done = 0

    with progress_bar() as bar:
        part = bar.add_task("preparing shards", total=len(missing))

        def advance():
            nonlocal done, said
            done += 1
            bar.advance(part)
            if not console.is_terminal and time.monotonic() - said >= SECONDS_PER_LINE:
                said = time.monotonic()
                console.print(f"  {done:,} of {len(missing):,} shards are prepared")

        if min(processes, len(missing)) < 2:
            for number in missing:
                write_shard(folder, number)
                advance()
            return
        # Not forked: a process with TensorFlow has threads, which a fork would leave without.
        context = multiprocessing.get_context("spawn")
        count = min(processes, len(missing))
        try:
            with concurrent.futures.ProcessPoolExecutor(count, context, _stop_at_once) as pool:
                shards = [pool.submit(write_shard, folder, number) for number in missing]
                try:
                    for shard in concurrent.futures.as_completed(shards):
                        shard.result()
                        advance()
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
        except BrokenProcessPool as error:
            raise RunError(
                f"{folder}: a process that prepared shards was lost; the same command goes on, "
                "with fewer --processes if memory was short."
            ) from error


def _stop_at_once():
    """Let Ctrl-C end a process that prepares; what it has not finished is not there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
