"""Options of the tasks that pre-train on documents of plain text, or on records of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from seqkeras.data.documents import FORMS
from seqkeras.data.token_records import RECORDS, form_of, is_records
from seqkeras.training.options import (
    DataFile,
    Number,
    Options,
    argument,
    at_least,
    option,
    shown,
)
from seqkeras.training.options.spaces import DROPOUT, OTHER_DROPOUT, OTHER_SIZE, SIZE

PART = Number(0, 1, min_open=True, max_open=True)
MOST_OF_FRACTION = Number(0, 1, max_open=True)


class Texts(DataFile):
    """The path of a file of text, or of a folder of records."""

    of_folder = f"is a folder without {RECORDS}; name files of text, or a folder of records"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if isinstance(value, str) and is_records(value):
            return value
        return super().convert(value, parameter, context)

    def read_file(self, path: Path | str) -> str | Path:
        return str(Path(path) / RECORDS) if Path(path).is_dir() else path


class DocumentOptions(Options):
    """Which documents a model is pre-trained on, where their records lie, and what a row is."""

    files: tuple = argument(
        Texts(), "Training files: plain text or .gz; or one folder of records.", several=True
    )
    form: str = option(
        None,
        click.Choice([*FORMS]),
        "Layout of the text: a sentence or paragraph in each line (lines), or paragraphs over "
        "several lines (prose). Default: lines, or the layout of the records.",
    )
    validation: str | None = option(None, DataFile(), "Validation file. Default: documents.")
    held_out: float = option(0.05, PART, "Share of documents that is held out, two at least.")
    records: str | None = option(
        None,
        click.Path(file_okay=False),
        "Folder for the records. Default: a folder beside the run.",
        False,
    )
    processes: int = option(1, at_least(1), "Processes that prepare records.", False)
    shard_megabytes: int = option(32, at_least(1), "Megabytes of text in a shard of records.")
    vocab_size: int = option(8000, at_least(1), "Tokens to learn, at most.", search=OTHER_SIZE)
    max_length: int = option(128, at_least(5), "Tokens of a row, special tokens included.")

    OF_TEXT = (
        "vocabulary",
        "vocab_size",
        "lowercase",
        "held_out",
        "records",
        "shard_megabytes",
    )

    def __init__(self, **values: Any):
        super().__init__(**values)
        if self.form is None:
            records = self.given_records()
            object.__setattr__(self, "form", form_of(records) if records else "lines")

    def given_records(self) -> str | None:
        """Return the folder of records that stands in place of files; None without one."""
        return next(filter(is_records, self.files or ()), None)

    def without_effect(self, command: Options) -> list[str]:
        """Return the options that were given, and that a folder of records decides, as it stands in
        place of files: names as the command line has them.

        Args:
            command: all options of the command line.
        """
        return [
            shown(name) for name in self.OF_TEXT if self.given_records() and command.is_given(name)
        ]

    def problems(self, command: Options) -> Iterable[str]:
        if command.start_from is not None and command.is_given("vocabulary"):
            yield "--start-from brings its vocabulary; leave --vocabulary out."
        records = self.given_records()
        if records is None:
            return
        if len(self.files) > 1:
            yield "FILES: a folder of records stands alone; leave the other files out."
        if self.validation is None and self.form != form_of(records):
            yield (
                f"--form {self.form}: the documents of {records} are {form_of(records)}; leave it "
                "out, or give the files."
            )


class BlockOptions(Options):
    """Sizes of a Transformer's blocks."""

    hidden_dim: int = option(256, at_least(1), "Size of the model's vectors.", search=SIZE)
    num_heads: int = option(4, at_least(1), "Attention heads of a block.")
    feed_forward_dim: int | None = option(
        None,
        at_least(1),
        "Inner size of the feed-forward layers. Default: four times --hidden-dim.",
    )
    attention_window: int | None = option(
        None, at_least(1), "Positions on each side that self-attention sees. Default: all."
    )
    dropout: float = option(
        0.1, MOST_OF_FRACTION, "Dropout rate of embeddings and sublayer outputs.", search=DROPOUT
    )
    attention_dropout: float = option(
        0.1, MOST_OF_FRACTION, "Dropout rate of attention weights.", search=OTHER_DROPOUT
    )

    def problems(self, command: Options) -> Iterable[str]:
        if self.hidden_dim % self.num_heads:
            yield (
                f"--num-heads must divide --hidden-dim; received {self.num_heads} and "
                f"{self.hidden_dim}."
            )
