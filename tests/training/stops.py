"""A training that is stopped right behind a checkpoint, as by kill -9."""

import contextlib
import itertools

import pytest

from seqkeras.training.checkpoint import Checkpoint


class Stopped(Exception):
    """What stops it."""


@contextlib.contextmanager
def stopped_behind_a_checkpoint(count=1):
    """The training in the block must make so many checkpoints, and is stopped behind the last."""
    saved, made = Checkpoint.on_epoch_end, itertools.count(1)

    def save_and_stop(self, epoch, logs=None):
        saved(self, epoch, logs)
        if next(made) == count:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Checkpoint, "on_epoch_end", save_and_stop)
        yield
