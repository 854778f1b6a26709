"""Records of a training as it goes on: history.csv, curves.png, samples.txt, events."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from seqkeras import files
from seqkeras.training.curves import draw_curves
from seqkeras.training.events import EventFile
from seqkeras.training.run import CURVES, HISTORY, SAMPLES, TENSORBOARD

if TYPE_CHECKING:
    from seqkeras.training.checkpoint import State


class History:
    """Writes what a `seqkeras.training.checkpoint.State` holds.

    The tables are written whole from the state, which is the checkpoint's when a training
    goes on: so no line is lost, and none stands twice.

    Args:
        folder: the run's, a `Path`.
        state: a `State`.
        events: whether to write events for TensorBoard.
    """

    def __init__(self, folder: Path, state: State, events: bool = True):
        self.folder, self.state = folder, state
        self.has_events, self.first_step = events, state.step + 1
        self.events: EventFile | None = None

    def write(self) -> None:
        """Write history.csv, and the events of the last row."""
        rows = self.state.rows
        names = list(dict.fromkeys(name for row in rows for name in row))
        with (
            files.written_aside(self.folder / HISTORY) as aside,
            open(aside, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        if self.has_events:
            if self.events is None:
                self.events = EventFile(self.folder / TENSORBOARD, self.first_step)
            scalars = {name: value for name, value in rows[-1].items() if name != "step"}
            self.events.write(rows[-1]["step"], scalars)

    def write_look(self) -> None:
        """Write samples.txt and curves.png."""
        with files.written_aside(self.folder / SAMPLES) as aside:
            aside.write_text("\n".join(self.state.samples), encoding="utf-8")
        with files.written_aside(self.folder / CURVES) as aside:
            draw_curves(self.state.rows, aside)

    def close(self) -> None:
        if self.events is not None:
            self.events.close()
