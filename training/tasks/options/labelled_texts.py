"""Options of tasks that read texts, or pairs of texts, with a label or a number each."""

import dataclasses

import click

from training.options import FRACTION, DataFile, argument, at_least, option, shown
from training.tasks.options.distillation import DistillationOptions
from training.tasks.options.encoders import OF_ENCODER
from training.tasks.options.pretrained import PooledOptions

FORMS = ("csv", "tsv", "jsonl")


@dataclasses.dataclass(frozen=True)
class LabelledTextOptions(PooledOptions, DistillationOptions):
    """How files with a text, or a pair, in each row are read and divided; a subclass names the
    column of labels."""

    file: str = argument(DataFile(), "Of training: .csv, .tsv, .jsonl.")
    validation: str | None = option(
        None, DataFile(), "File of validation; without it, some rows of FILE are held out."
    )
    held_out: float = option(0.1, FRACTION, "Share of FILE's rows that are held out.")
    folds: int | None = option(
        None, at_least(2), "Hold out one of so many parts of FILE instead, for cross-validation."
    )
    fold: int = option(1, at_least(1), "Which of --folds is held out, from 1.")
    group_column: str | None = option(
        None, str, "Rows with the same text in this column stay in one of --folds."
    )
    format: str | None = option(
        None, click.Choice(FORMS), "Form of the files; without it their names tell it."
    )
    header: bool = option(
        True, bool, "Whether the first line names the columns; if not, they are numbers from 1."
    )
    skip_empty: bool = option(
        False,
        bool,
        "Leave rows out whose text or label is empty, or whose text has no token, and say how many "
        "there are.",
    )
    text_column: str = option("text", str, "Name of the column of texts.")
    pair_column: str | None = option(None, str, "Name of that of second texts, of pairs.")
    batch_size: int = option(32, at_least(1), "Examples in each step.")
    passes: int = option(5, at_least(1), "How often the model sees each training example.")
    vocab_size: int = option(8000, at_least(1), "WordPieces to learn, at most.")
    lowercase: bool = option(True, bool, "Read capitals as small letters, without accents.")
    unlabelled: str | None = option(
        None, DataFile(), "Of --teacher: file of more texts, of which it alone gives the answers."
    )
    augment: int = option(
        0,
        click.IntRange(min=0),
        "Of --teacher: altered copies of each text, of which it alone gives the answers.",
    )
    max_length: int | None = option(
        None, at_least(4), "Tokens of a text or a pair, 128 by default; more are cut off."
    )
    stride: int | None = option(
        None,
        at_least(1),
        "Read longer texts in windows of --max-length that begin so many tokens apart: each learns "
        "the text's target, and the mean of their logits answers. Without it they are cut off.",
    )
    hops: int = option(4, at_least(1), "Queries of the attention that sums up the text.")

    OF_SCRATCH = (*OF_ENCODER, "vocab_size", "lowercase", "hops")

    def check(self):
        super().check()
        for problem in self._problems_of_rows():
            raise click.UsageError(problem)

    def _problems_of_rows(self):
        if self.teacher is None and (self.unlabelled is not None or self.augment):
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
        if self.stride is not None and self.teacher is not None:
            yield "--stride: a teacher answers whole texts; leave it or --teacher out."

    def reading(self, names):
        """How `seqkeras.data.columns.read_columns` reads the columns of these options.

        Args:
            names: of the options' fields that name columns.
        """
        return {
            "form": self.format,
            "header": self.header,
            "options": tuple(map(shown, names)),
        }
