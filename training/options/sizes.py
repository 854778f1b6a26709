"""Options of the size of a model, which the number of examples in the file decides."""

import csv
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from seqkeras import files
from seqkeras.data.texts import open_text, suffix_of
from seqkeras.runs import OPTIONS
from seqkeras.training.options import FitOptions, Options, option, options_of, shown
from seqkeras.training.options.labelled_texts import FORMS

AUTO, SMALL, BASE = "auto", "small", "base"
BRINGS_SIZES = ("pretrained", "teacher")
OF_TEXTS = {SMALL: {"embedding_dim": 64, "units": 64}, BASE: {}}  # of a text as a whole
FORMS_WITH_HEADER = (".csv", ".tsv")  # of tasks that have --header


class SizeOptions(Options):
    """How large a model is, where no option of its layers says so. The options of the command have
    `SIZES`, `SMALL_UP_TO` and `text_files`, too."""

    size: str = option(
        AUTO,
        click.Choice((AUTO, SMALL, BASE)),
        "Size of the model, where no other option gives it; auto chooses by the number of examples "
        "in FILE.",
    )

    def problems(self, command: Options) -> Iterable[str]:
        for name in BRINGS_SIZES:
            if self.size == SMALL and command.is_given(name):
                yield f"--size small: {shown(name)} brings its own sizes; leave --size out."

    def of_file(self, command: FitOptions) -> str:
        """Return the size. Where it is auto, the run of --start-from decides, or the number of
        examples; it stays auto where another model brings its sizes and where inputs are no texts.

        Args:
            command: all options of the command line.
        """
        paths = command.text_files()
        if self.size != AUTO or not paths or any(map(command.is_given, BRINGS_SIZES)):
            return self.size
        if command.start_from is not None:
            return _size_of_run(Path(command.start_from), command.task)
        counts = (
            count_examples(path, command.IN_BLOCKS, _has_header(path, command)) for path in paths
        )
        return SMALL if sum(counts) <= command.SMALL_UP_TO else BASE


def count_examples(path: Path | str, in_blocks: bool = False, has_header: bool = False) -> int:
    """Return about how many examples a file holds: its rows, of .csv its records. A file that can
    not be read counts 0; its reader tells what is wrong.

    Args:
        in_blocks: whether an empty line ends an example, except in .jsonl.
        has_header: whether the first row names columns, and is no example.
    """
    return max(_count_rows(path, in_blocks) - has_header, 0)


def _has_header(path, options):
    """Return whether the first row of a file names columns."""
    form = getattr(options, "format", None)
    suffix = f".{form}" if form in FORMS else suffix_of(path)
    if "header" in options_of(type(options)):
        return options.header and suffix in FORMS_WITH_HEADER
    return suffix == ".csv"


def _count_rows(path, in_blocks):
    suffix = suffix_of(path)
    try:
        with open_text(path) as file:
            if suffix == ".csv":
                return sum(1 for row in csv.reader(file) if row)
            if not in_blocks or suffix == ".jsonl":
                return sum(1 for _ in file)
            blank = [not line.strip() for line in file]
            return sum(a and not b for a, b in zip([True, *blank], blank))
    except (EOFError, OSError, zlib.error, csv.Error):
        return 0


def _size_of_run(folder, task):
    """Return the size of a run of the same task; auto for another folder, which has its own."""
    try:
        options = files.read_json(folder / OPTIONS)
    except (OSError, ValueError):
        return AUTO
    is_same = isinstance(options, dict) and options.get("task") == task
    size = options.get("size") if is_same else None
    return size if size in (SMALL, BASE) else AUTO


def values_of_size(kind: type[FitOptions], size: str) -> dict[str, Any]:
    """Return name -> value of the options that a size decides, small or base; nothing for auto.
    What `SIZES` leaves out for a size has the default of its option."""
    if size not in kind.SIZES:
        return {}
    fields = options_of(kind)
    return {name: fields[name].default for name in kind.SIZES[SMALL]} | kind.SIZES[size]


def told_size(options: FitOptions) -> str | None:
    """Return what --size decides, for the first lines of a training; None where nothing."""
    if not options.SIZES or any(map(options.is_given, BRINGS_SIZES)):
        return None
    decided = [
        f"{shown(name)} {value}"
        for name, value in values_of_size(type(options), options.size).items()
        if getattr(options, name) == value
    ]
    return f"--size {options.size}: {', '.join(decided)}" if decided else None
