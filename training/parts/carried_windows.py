"""Training on windows of recordings that carry their state, with --carry-every."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from seqkeras.data.batches import Batches
from seqkeras.data.recording_windows import recording_windows
from seqkeras.runs import RunError
from seqkeras.training.carried import CarriedFrames
from seqkeras.training.console import console
from seqkeras.training.wording import counted

LONGEST = 2**20  # frames, or rows of a series, that a model takes at once if any number is right


def in_training(model: keras.Model, options: Any, frames: str = "frames") -> keras.Model:
    """Return the model that is trained: with --carry-every one that carries its state.

    Args:
        model: a functional model of frames.
        options: with `carry_every` and `batch_size`.
        frames: name of the input of frames.
    """
    if options.carry_every is None:
        return model
    carried = CarriedFrames(model, options.batch_size, frames)
    carried.build()
    return carried


def carried_batches(
    options: Any, inputs: Mapping[str, Any], targets: Any, sizes: Sequence[int], ignored: float
) -> Batches:
    """Return the batches of `seqkeras.data.recording_windows`, as options say.

    Args:
        options: with `file`, `carry_every`, `batch_size` and `seed`.
        inputs, targets, sizes, ignored: see there.

    Raises:
        RunError: if there are fewer frames than rows of a batch.
    """
    length, rows = options.carry_every, options.batch_size
    if sum(sizes) < rows:
        raise RunError(
            f"{options.file}: {counted(sum(sizes), 'frames are', 'frame is')} left for training, "
            f"fewer than the {rows} rows of a batch; choose a smaller --batch-size."
        )
    batches = recording_windows(inputs, targets, sizes, length, rows, options.seed, ignored)
    console.print(f"  {rows} rows that go on from batch to batch, {length:,} frames in each")
    return batches
