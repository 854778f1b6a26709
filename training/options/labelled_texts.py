"""Options of tasks that read texts, or pairs of texts, with a label or a number each."""

from collections.abc import Iterable, Sequence
from typing import Any

import click

from seqkeras.data.columns import WaysOut, require_columns
from seqkeras.training.options import DataFile, Options, at_least, option, shown
from seqkeras.training.options.encoders import OF_ENCODER
from seqkeras.training.options.held_out import held_out_option
from seqkeras.training.options.spaces import OTHER_SIZE

FORMS = ("csv", "tsv", "jsonl")
WAYS_OUT = WaysOut(empty="--skip-empty true", form="--format", header="--header false")

OF_SCRATCH = (*OF_ENCODER, "vocab_size", "lowercase", "hops")  # without --pretrained


class LabelledTextOptions(Options):
    """How files with a text, or a pair, in each row are read and divided; the options of the
    command have a `file`, a column of targets and a `DistillationOptions`, too."""

    validation: str | None = option(None, DataFile(), "Validation file. Default: rows of FILE.")
    held_out: float | None = held_out_option("FILE's rows")
    folds: int | None = option(
        None, at_least(2), "Number of parts of FILE for cross-validation; one of them is held out."
    )
    fold: int = option(1, at_least(1), "Number of the part that is held out of --folds, from 1.")
    group_column: str | None = option(
        None, str, "Column whose equal values keep their rows together in one part of --folds."
    )
    format: str | None = option(
        None, click.Choice(FORMS), "Format of the files. Default: told by the file suffix."
    )
    header: bool = option(
        True, bool, "Read column names from the first line; false numbers the columns from 1."
    )
    skip_empty: bool = option(
        False,
        bool,
        "Leave out rows whose text or label is empty or whose text has no token, and report their "
        "number.",
    )
    text_column: str = option("text", str, "Column of texts.")
    pair_column: str | None = option(None, str, "Column of second texts, for pairs.")
    vocab_size: int = option(8000, at_least(1), "WordPieces to learn, at most.", search=OTHER_SIZE)
    lowercase: bool | None = option(
        None,
        bool,
        "Lower-case the text and strip its accents. Default: true, unless more than 1 in 200 "
        "letters has an accent.",
    )
    unlabelled: str | None = option(None, DataFile(), "File of more texts that --teacher labels.")
    augment: int = option(
        0,
        click.IntRange(min=0),
        "Altered copies of a text, labelled by --teacher.",
    )
    max_length: int | None = option(
        None, at_least(4), "Tokens of a text or pair; the rest is cut off. Default: 128."
    )
    stride: int | None = option(
        None,
        at_least(1),
        "Tokens between the starts of two windows of --max-length in a long text; each window "
        "learns the text's target, and the mean of all logits answers. Default: long texts are "
        "cut off.",
    )
    hops: int = option(4, at_least(1), "Queries of the attention that sums up the text.")

    def problems(self, command: Options) -> Iterable[str]:
        if command.teacher is None and (self.unlabelled is not None or self.augment):
            name = "--augment" if self.unlabelled is None else "--unlabelled"
            yield f"{name} needs --teacher, which answers what has no label."
        if not self.header and self.format == "jsonl":
            yield "--header false: .jsonl names its columns in each line."
        if self.folds is None and (self.fold != 1 or self.group_column is not None):
            yield "--fold and --group-column need --folds, the number of parts."
        if self.folds is not None and self.fold > self.folds:
            yield f"--fold must be at most --folds {self.folds}; received {self.fold}."
        if self.folds is not None and self.validation is not None:
            yield "--folds and --validation are two ways to have validation examples; choose one."
        if self.stride is not None and self.pair_column is not None:
            yield "--stride: a pair is not read in windows; leave it or --pair-column out."
        if self.stride is not None and command.teacher is not None:
            yield "--stride: a teacher answers whole texts; leave it or --teacher out."

    def columns(self, command: Any, target: str) -> tuple[list[str], list[str]]:
        """Return the names of the options that name columns, and the columns that are read.

        Args:
            command: all options of the command line.
            target: the option that names the column of targets.
        """
        names = ["text_column", "pair_column", target, "group_column"]
        names = [name for name in names if getattr(command, name) is not None]
        columns = [getattr(command, name) for name in names]
        return names, [*dict.fromkeys(columns)] if self.group_column is not None else columns

    def require_files(self, command: Any, target: str) -> None:
        """Refuse files that lack a column, see `columns`."""
        names, columns = self.columns(command, target)
        for path in filter(None, (command.file, self.validation)):
            require_columns(path, columns, **self.reading(names), ways_out=WAYS_OUT)

    def reading(self, names: Sequence[str]) -> dict[str, Any]:
        """Return how `seqkeras.data.columns.read_columns` reads the columns of these options.

        Args:
            names: names of the options' fields that name columns.
        """
        return {
            "form": self.format,
            "header": self.header,
            "options": tuple(map(shown, names)),
        }
