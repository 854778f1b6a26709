"""Windows of recordings, for training that carries a state from window to window.

    the windows of a recording of L frames begin at frames 0, T, 2 T, ...; the last one is padded

Where there are fewer recordings than rows of a batch, recordings are cut into parts of about the
same length; each part begins anew.

Which windows make a batch is a function of the seed and the step alone, so that a run that was
stopped goes on with the batches that it would have seen.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqkeras.data.batches import Batches


class RecordingWindows:
    """Values of all frames, a window at a time.

    Args:
        values: (frames, ...), the frames of all recordings, one recording after the other.
        starts, lengths: (windows,) integers, the first frame of each window, and its frames.
        length: T, of a window.
        padding: what stands after the end of a recording.
    """

    def __init__(
        self, values: Any, starts: np.ndarray, lengths: np.ndarray, length: int, padding: float
    ):
        self.values, self.starts, self.lengths = values, starts, lengths
        self.steps, self.padding = np.arange(length), padding
        self.dtype = values.dtype
        self.shape = len(starts), length, *values.shape[1:]

    def __getitem__(self, windows: np.ndarray) -> np.ndarray:
        """Return (len(windows), T, ...)."""
        real = self.steps < self.lengths[windows][:, None]
        frames = np.full((len(windows), *self.shape[1:]), self.padding, self.dtype)
        frames[real] = self.values[(self.starts[windows][:, None] + self.steps)[real]]
        return frames


class ConsecutiveWindows:
    """Rows that read recordings from begin to end, a window in each batch.

    A row that has read a recording begins the next one of the pass, in the batch that follows; the
    recordings of a pass are shuffled, and the next pass begins where a row is free.

    Args:
        counts: (recordings,) integers, the windows of each.
        batch_size: rows of each batch.
        seed: seed of all shuffling.

    Attributes:
        batches_per_pass: how many batches have as many windows as the recordings.

    Raises:
        ValueError: if there are fewer recordings than rows.
    """

    def __init__(self, counts: np.ndarray, batch_size: int, seed: int):
        if len(counts) < batch_size:
            raise ValueError(
                f"ConsecutiveWindows: a batch of {batch_size} needs as many recordings; received "
                f"{len(counts)}."
            )
        self.firsts = np.cumsum(counts) - counts
        self.counts, self.batch_size, self.seed = counts, batch_size, seed
        self.batches_per_pass = int(counts.sum()) // batch_size

    def from_step(self, step: int) -> Iterator[np.ndarray]:
        """Yield (batch_size,) windows for `step`, `step + 1`, and so on without end."""
        recordings = self._recordings()
        windows = np.zeros(self.batch_size, "int64")
        ends = windows.copy()
        for number in itertools.count():
            for row in np.flatnonzero(windows == ends):
                recording = next(recordings)
                windows[row] = self.firsts[recording]
                ends[row] = windows[row] + self.counts[recording]
            if number >= step:
                yield windows.copy()
            windows += 1

    def _recordings(self):
        for number in itertools.count():
            generator = np.random.default_rng([self.seed, number])
            yield from generator.permutation(len(self.counts))


def recording_windows(
    inputs: Mapping[str, Any],
    targets: Any,
    sizes: Sequence[int],
    length: int,
    batch_size: int,
    seed: int,
    ignored: float,
) -> Batches:
    """Return `Batches` whose rows go on where they ended in the batch before.

    The inputs are those given and "begins", (B,) booleans, True for rows that begin a recording.

    Args:
        inputs: name -> (frames, ...) of all recordings, one after the other.
        targets: the same, of the targets.
        sizes: frames of each recording.
        length: T, of a window.
        batch_size, seed: see `ConsecutiveWindows`.
        ignored: target of padding.

    Raises:
        ValueError: if there are fewer frames than rows.
    """
    if len(sizes) < batch_size:
        most = max(sum(sizes) // batch_size, 1)
        sizes = [min(most, size - start) for size in sizes for start in range(0, size, most)]
    counts = -(-np.asarray(sizes) // length)
    places = np.concatenate([np.arange(count) for count in counts]) * length
    starts = np.repeat(np.cumsum(sizes) - sizes, counts) + places
    lengths = np.minimum(np.repeat(sizes, counts) - places, length)
    windows = {
        name: RecordingWindows(values, starts, lengths, length, 0)
        for name, values in inputs.items()
    }
    return Batches(
        windows | {"begins": places == 0},
        RecordingWindows(targets, starts, lengths, length, ignored),
        ConsecutiveWindows(counts, batch_size, seed),
        tokens=lengths,
    )
