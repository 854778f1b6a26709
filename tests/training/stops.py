"""A training that is stopped right behind a checkpoint, as by kill -9."""

import contextlib

import pytest

from seqkeras.training.checkpoint import Checkpoint


class Stopped(Exception):
    """What stops it."""


@contextlib.contextmanager
def stopped_behind_a_checkpoint(monkeypatch):
    """The training in the block must come to a checkpoint, and is stopped behind the first."""
    saved = Checkpoint.on_epoch_end

    def save_and_stop(self, epoch, logs=None):
        saved(self, epoch, logs)
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Checkpoint, "on_epoch_end", save_and_stop)
        yield
