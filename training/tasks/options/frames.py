"""Options of tasks that read frames of numbers as well as texts."""

import dataclasses

import click

from seqkeras.data.recordings import files_of_table
from seqkeras.training.options import Names, option
from seqkeras.training.tasks.options.decimals import decimal_comma, decimal_point, require_numbers
from seqkeras.training.tasks.options.encoders import EncoderOptions

ARRAYS = ".npz"


@dataclasses.dataclass(frozen=True)
class FrameOptions(EncoderOptions):
    """How files of frames are read; a subclass has `file`, `validation` and a column of labels."""

    numbers: tuple = option((), Names(), "Columns of numbers, in a file with a row for each frame.")
    decimal_point: tuple = decimal_point()
    decimal_comma: tuple = decimal_comma()
    series_column: str | None = option(
        None, str, "Column that tells recordings apart, in a file with a row for each frame."
    )
    frames_column: str | None = option(
        None, str, "Column that names .npy files, in a file with a row for each recording."
    )

    def check(self):
        super().check()
        require_numbers(self, self.numbers, "--numbers")
        if self.numbers and self.frames_column is not None:
            raise click.UsageError("--numbers and --frames-column are two forms; choose one.")
        if self.character_filters and self.reads_frames(self.file):
            raise click.UsageError(
                "--character-filters: are of words; sequences of numbers have none."
            )
        if self.series_column is not None and not self.numbers:
            raise click.UsageError("--series-column needs --numbers.")

    def reads_frames(self, path):
        """Return whether a file is of frames, and not of texts."""
        return str(path).lower().endswith(ARRAYS) or bool(self.numbers or self.frames_column)

    def table_columns(self):
        """Return the columns of a table that name files."""
        return () if self.frames_column is None else (self.frames_column,)

    def files_within(self):
        """Return a dictionary: name of a file of the user's -> the files that it names."""
        columns = self.table_columns()
        paths = [path for path in (self.file, self.validation) if path is not None and columns]
        return {path: files_of_table(path, columns) for path in paths}
