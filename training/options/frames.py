"""Options of tasks that read frames of numbers as well as texts."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seqkeras.data.recordings import files_of_table
from seqkeras.training.options import Names, Options, at_least, option, part
from seqkeras.training.options.decimals import DecimalOptions

ARRAYS = ".npz"
TAG = "tag"  # the column of tags, where frames are rows


class FrameOptions(Options):
    """Options of files of frames, beside the command's `file` and `EncoderOptions`."""

    numbers: tuple = option((), Names(), "Columns of numbers, in a file with a row for each frame.")
    decimals: DecimalOptions = part(DecimalOptions)
    series_column: str | None = option(
        None, str, "Column that tells recordings apart, in a file with a row for each frame."
    )
    frames_column: str | None = option(
        None, str, "Column that names .npy files, in a file with a row for each recording."
    )
    carry_every: int | None = option(
        None,
        at_least(1),
        "Frames of a training window of a --causal model, which carries its state from window to "
        "window of a recording; the gradient ends where a window begins. Default: training reads "
        "whole recordings.",
    )

    def problems(self, command: Options) -> Iterable[str]:
        yield from self.decimals.problems_of_columns(self.numbers, "--numbers")
        if self.numbers and self.frames_column is not None:
            yield "--numbers and --frames-column are two forms; choose one."
        if command.character_filters and self.reads_frames(command.file):
            yield "--character-filters: are of words; sequences of numbers have none."
        if self.series_column is not None and not self.numbers:
            yield "--series-column needs --numbers."
        if self.carry_every is not None:
            if not (command.causal and self.reads_frames(command.file)):
                yield "--carry-every is for --causal models of frames."
            if command.batch_tokens is not None:
                yield "--carry-every: each row goes on; choose --batch-size, not --batch-tokens."

    def reads_frames(self, path: Path | str) -> bool:
        """Return whether a file is of frames, and not of texts."""
        return str(path).lower().endswith(ARRAYS) or bool(self.numbers or self.frames_column)

    def files_within(self, paths: Sequence[Any], *columns: str) -> dict[str, list[Path | str]]:
        """Return name of a file of the user's -> the files that it names.

        Args:
            paths: paths of the user's files; None for one that is not given.
            columns: further columns of a table that name files.
        """
        if self.frames_column is None:
            return {}
        columns = (self.frames_column, *columns)
        return {path: files_of_table(path, columns) for path in paths if path is not None}
