"""The checkpoint from which a stopped training goes on bit for bit: one file, whole or absent."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from seqkeras import files
from seqkeras.runs import RunError
from seqkeras.terminal import one_line

if TYPE_CHECKING:
    from seqkeras.training.averages import Averages

STATE = "training.json"  # members of the .keras archive, which Keras does not read
AVERAGED = "averaged.npz"


@dataclasses.dataclass
class State:
    """State of a training beside the model and its optimizer.

    Attributes:
        step: updates of the weights so far.
        seconds: seconds of training so far, over all processes.
        rows: rows of history.csv, name -> value.
        looks: [step, rank] of every look; the better look has the larger rank.
        samples: of samples.txt, a text for each look.
    """

    step: int = 0
    seconds: float = 0.0
    rows: list = dataclasses.field(default_factory=list)
    looks: list = dataclasses.field(default_factory=list)
    samples: list = dataclasses.field(default_factory=list)

    def best_step(self) -> int | None:
        """Return the step of the first of the best looks; None before the first look."""
        return max(self.looks, key=lambda look: look[1])[0] if self.looks else None

    def looks_since_best(self) -> int:
        return len(self.looks) - 1 - [step for step, _ in self.looks].index(self.best_step())


class Checkpoint(keras.callbacks.Callback):
    """Save model, optimizer and state after every epoch, and the weights that are averaged.

    Args:
        path: path of the file.
        state: a `State`.
        averages: a `seqkeras.training.averages.Averages`.
    """

    def __init__(self, path: Path, state: State, averages: Averages):
        super().__init__()
        self.path, self.state, self.averages = path, state, averages

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        with files.written_aside(self.path) as aside:
            self.model.save(aside)
            with zipfile.ZipFile(aside, "a") as archive:
                archive.writestr(STATE, json.dumps(dataclasses.asdict(self.state)))
                if self.averages.kept:
                    with archive.open(AVERAGED, "w", force_zip64=True) as member:
                        np.savez(member, **_named(self.averages.kept))


def restore(path: Path, model: keras.Model) -> tuple[State, list[list[np.ndarray]]]:
    """Give a compiled model, whose optimizer is built, the weights and the state of a checkpoint.

    Returns:
        Its `State`, and the weights that are averaged.

    Raises:
        RunError: if the file is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            json.loads(archive.read("config.json"))
            state = State(**json.loads(archive.read(STATE)))
            averaged = []
            if AVERAGED in archive.namelist():
                with archive.open(AVERAGED) as member, np.load(io.BytesIO(member.read())) as arrays:
                    averaged = _unnamed(arrays)
        model.load_weights(path)
    except Exception as error:
        raise _damaged(path, error, "begin again with --overwrite") from error
    return state, averaged


def saved_step(path: Path) -> int:
    """Return the step of a checkpoint; 0 where there is none, or it can not be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return json.loads(archive.read(STATE))["step"]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return 0


def load_model(path: Path | str, way_out: str, **options: Any) -> keras.Model:
    """Return a saved model.

    Args:
        path: path of the file.
        way_out: what to do if it is damaged, for the error.
        options: in the form that `keras.models.load_model` takes.

    Raises:
        RunError: if it is damaged.
    """
    try:
        return keras.models.load_model(path, **options)
    except Exception as error:
        raise _damaged(path, error, way_out) from error


def _damaged(path, error, way_out):
    """Return the error of a damaged file; what Keras raises depends on where the damage is."""
    reason = one_line(str(error) or type(error).__name__)
    return RunError(f"{path}: damaged ({reason:.200}); {way_out}.")


def _named(all_weights):
    """Return a dictionary: name -> array, for lists of weights."""
    return {
        f"{number}/{index}": array
        for number, weights in enumerate(all_weights)
        for index, array in enumerate(weights)
    }


def _unnamed(arrays):
    """Return the lists of weights of such names."""
    all_weights = []
    for name in arrays.files:
        number, index = map(int, name.split("/"))
        if index == 0:
            all_weights.append([])
        all_weights[number].append(arrays[name])
    return all_weights
