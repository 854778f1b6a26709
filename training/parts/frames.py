"""Frames of numbers as the inputs of a task: read, scaled, and given to an encoder."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.batches import FrameSequences
from seqkeras.data.recordings import read_arrays, read_rows, read_table
from seqkeras.runs import RunError
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.rows import Rows
from seqkeras.training.console import console, say_merged
from seqkeras.training.options.frames import ARRAYS
from seqkeras.training.parts.carried_windows import LONGEST, carried_batches
from seqkeras.training.parts.encoders import encoded_frames
from seqkeras.training.parts.scaling import learned_numbers, learned_scaling
from seqkeras.training.task import Modelling
from seqkeras.training.wording import counted
from seqkeras.values import scaling

if TYPE_CHECKING:
    from seqkeras.data.batches import Batches
    from seqkeras.data.recordings import Recording

KEPT = 128  # validation recordings that go with the run
MOST_KEPT = 1024  # frames of each, where training carries the state through long recordings


class Frames:
    """Reading that tasks of frames share.

    Args:
        options: with `recordings`, a `FrameOptions`.
        label_column: the column of labels in a table.
        for_each_frame: whether each frame has a label.
    """

    def __init__(self, options: Any, label_column: str | None, for_each_frame: bool):
        self.options, self.label_column, self.for_each_frame = options, label_column, for_each_frame

    def read(self, path: Path | str) -> list[Recording]:
        """Return the `Recording`s of a file of training or validation."""
        recordings = self._read(path)
        for column in recordings[0].spellings:
            written = (recording.spellings[column] for recording in recordings)
            say_merged(path, column, itertools.chain.from_iterable(written))
        return recordings

    def _read(self, path):
        options = self.options
        if path.lower().endswith(ARRAYS):
            return read_arrays(path, self.for_each_frame)
        column = self.label_column
        if options.frames_column is not None:
            return read_table(path, options.frames_column, column, self.for_each_frame)
        if not options.numbers:
            raise RunError(
                f"{path}: expected a {ARRAYS} file, or --frames-column, as the model reads arrays."
            )
        names = options.numbers, column, self.for_each_frame, options.series_column
        return read_rows(path, *names, options.recordings.decimals.signs())

    def of_settings(self, settings: Mapping[str, Any]) -> Frames:
        """Return `Frames` that read further files as the settings of a run or a bundle say."""
        rows = settings.get("rows")
        if rows is None:
            changes = {
                "numbers": (),
                "series_column": None,
                "decimal_point": (),
                "decimal_comma": (),
            }
        else:
            names = tuple(column["name"] for column in rows["columns"])
            series = self.options.series_column or rows.get("series")
            changes = {"numbers": names, "series_column": series, "frames_column": None}
            for option, sign in (("decimal_point", "."), ("decimal_comma", ",")):
                columns = [column for column in rows["columns"] if column.get("decimal") == sign]
                changes[option] = tuple(column["name"] for column in columns)
        options = dataclasses.replace(self.options, **changes)
        frames = Frames(options, self.label_column, self.for_each_frame)
        frames.rows = rows and Rows(**parse_fields(Rows, rows, "rows", []))
        return frames

    def require_size(self, examples: Sequence[Any], others: list[Any]) -> None:
        """Raise a `RunError` unless frames of two files have as many numbers."""
        sizes = [recordings[0].numbers.shape[1] for recordings in (examples, others)]
        if sizes[0] != sizes[1]:
            raise RunError(
                f"{others[0].where}: its frames have {sizes[1]} numbers, those of training "
                f"{sizes[0]}."
            )

    def record(self, examples: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the limits and settings of a run, as learned of training examples."""
        options, longest = self.options, max(map(len, examples))
        limit = LONGEST if options.carry_every else options.max_length or longest
        self._learn([example.numbers for example in examples])
        settings = {} if self.rows is None else {"rows": dataclasses.asdict(self.rows)}
        return {"source_length": limit}, settings

    def _learn(self, frames):
        options = self.options
        if not options.numbers:
            self.rows = None
            way_out = ", or name columns of a table by --numbers, which may have any size"
            self.mean, self.deviation = learned_scaling(options.file, frames, way_out)
            return
        learned = [
            learned_numbers(
                options.file, name, column, decimal=options.recordings.decimals.signs().get(name)
            )
            for name, column in zip(options.numbers, np.concatenate(frames).T, strict=True)
        ]
        self.rows = Rows(tuple(scaling.column for scaling in learned), None, options.series_column)

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        """Return the examples that go with the run, evenly spread."""
        places = np.linspace(0, len(validation) - 1, min(KEPT, len(validation))).astype(int)
        most = MOST_KEPT if self.options.carry_every else None
        return [validation[index].up_to(most) for index in places]

    def inputs(self, examples: Sequence[Any], limit: int | None) -> tuple[Any, Any]:
        """Return the arrays of examples, cut to so many frames, and their lengths."""
        cut = sum(len(example) > limit for example in examples)
        if cut:
            more = f"of more than {limit:,} frames"
            console.print(f"  {counted(cut, f'recordings {more} are', f'recording {more} is')} cut")
        frames = FrameSequences([numbers[:limit] for numbers in self._features(examples)])
        return {"frames": frames, "lengths": frames.lengths}, frames.lengths

    def _features(self, examples):
        """Return the frames of each example as the model reads them."""
        numbers = [example.numbers for example in examples]
        if self.rows is None:
            return numbers
        return [self.rows.scaled(self.rows.filled(table)) for table in numbers]

    def carried(
        self, examples: Sequence[Any], targets: Sequence[np.ndarray], ignored: int
    ) -> Batches:
        """Return batches of windows of --carry-every frames, whose rows go on from batch to batch.

        Args:
            examples: training examples.
            targets: (frames,) integers of each.
            ignored: the target that counts nothing.
        """
        frames = np.concatenate(self._features(examples), dtype="float32")
        sizes = [*map(len, examples)]
        return carried_batches(
            self.options, {"frames": frames}, np.concatenate(targets), sizes, ignored
        )

    def carries_state(self) -> tuple[str, str] | None:
        """See `seqkeras.training.task.Modelling.carries_state`."""
        return ("--carry-every", "--max-length") if self.options.carry_every else None

    def sample(self, example: Any) -> dict[str, str]:
        """Return what samples.txt shows of the input."""
        return {"input": f"{example.where}, {len(example):,} frames"}

    def encoded(self, limit: int) -> tuple[Any, ...]:
        """See `seqkeras.training.parts.encoders.encoded_frames`."""
        if self.rows is not None:  # they scale the numbers
            width = self.rows.num_features
            return encoded_frames(self.options, lambda frames: frames, width, limit)
        scaled = scaling(self.mean, self.deviation)
        return encoded_frames(self.options, scaled, len(self.mean), limit)


class FrameModelling(Modelling):
    """Base of the models of texts or frames, with what a model of frames can do.

    Its `reading.frames` is a `Frames`, or None.
    """

    @property
    def streams(self) -> bool:
        return bool(self.reading.frames) and self.options.causal

    def carries_state(self) -> tuple[str, str] | None:
        return self.reading.frames and self.reading.frames.carries_state()
