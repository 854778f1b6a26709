"""Options of the size of a model, which the number of lines of the file decides."""

from collections.abc import Iterable
from pathlib import Path

import click

from seqkeras import files
from seqkeras.data.texts import count_lines
from seqkeras.runs import OPTIONS
from seqkeras.training.options import FitOptions, Options, option, shown

AUTO, SMALL, BASE = "auto", "small", "base"
BRINGS_SIZES = ("pretrained", "teacher")


class SizeOptions(Options):
    """How large a model is, where no option of its layers says so. The options of the command have
    `SIZES`, `SMALL_UP_TO` and `counted_files`, too."""

    size: str = option(
        AUTO,
        click.Choice((AUTO, SMALL, BASE)),
        "Size of the model and length of the training, where no other option gives them; auto "
        "chooses by the number of lines of FILE.",
    )

    def problems(self, of: Options) -> Iterable[str]:
        for name in BRINGS_SIZES:
            if self.size != AUTO and getattr(of, name, None) is not None:
                yield f"--size: {shown(name)} brings its own sizes; leave it out."

    def of_file(self, of: FitOptions) -> str:
        """Return the size: where it is auto that of the run of --start-from, or one that the lines
        of the file choose; auto where another model brings its sizes, or inputs are no texts.

        Args:
            of: all options of the command.
        """
        counted = of.counted_files()
        if self.size != AUTO or not counted or any(map(of.is_given, BRINGS_SIZES)):
            return self.size
        if of.start_from is not None:
            return _size_of_run(Path(of.start_from))
        return SMALL if sum(map(count_lines, counted)) <= of.SMALL_UP_TO else BASE


def _size_of_run(folder):
    """Return the size of a run of the same task; auto for other folders, which bring theirs."""
    path = folder / OPTIONS
    return files.read_json(path).get("size", AUTO) if path.is_file() else AUTO


def told_size(options: FitOptions) -> str | None:
    """Return what --size decides, for the first lines of a training; None where nothing."""
    if not options.SIZES:
        return None
    decided = [
        f"{shown(name)} {value}"
        for name, value in options.SIZES.get(options.size, {}).items()
        if getattr(options, name) == value
    ]
    return f"--size {options.size}: {', '.join(decided)}" if decided else None
