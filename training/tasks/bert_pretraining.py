"""`seqkeras train bert-pretraining`: its options, and what it is made of."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from seqkeras.data.documents import FORMS
from seqkeras.data.masking import KINDS
from seqkeras.data.token_records import RECORDS, form_of, is_records
from seqkeras.training.options import (
    FRACTION,
    NOT_NEGATIVE,
    OPTIMIZERS,
    POSITIVE,
    SCHEDULES,
    DataFile,
    FitOptions,
    Number,
    Options,
    argument,
    at_least,
    option,
    shown,
)
from seqkeras.training.options.positions import position_kind_option
from seqkeras.training.options.pretrained import PretrainedFolder
from seqkeras.training.task import Task

OF_SCRATCH = (
    "vocabulary",
    "num_layers",
    "hidden_dim",
    "num_heads",
    "feed_forward_dim",
    "positions",
    "position_kind",
    "attention_window",
)
OF_TEXT = ("vocabulary", "vocab_size", "lowercase", "held_out", "records", "shard_megabytes")
MOST_OF_FRACTION = Number(0, 1, max_open=True)
PART = Number(0, 1, min_open=True, max_open=True)


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


class BertPretrainingOptions(FitOptions, task="bert-pretraining"):
    """Train a BERT on plain text, by masked words and pairs of sentences.

    Your file looks like this: a sentence, or a paragraph, a line, and an empty line between two
    documents; in UTF-8, plain or .gz. Several files are read one behind the other.

    \b
        The old house is here.
        Nobody lives in it.

    \b
        She left Oslo in May.
        ...

    Books have other lines: with --form prose a paragraph may take several lines, and three empty
    lines end a document. The model learns to predict masked words, and whether one text follows
    another; with --pairs false it learns the words alone, as RoBERTa does. A twentieth of the
    documents is held out for validation. The text is cut into tokens once, and the records are
    written to a folder beside the run; further runs take that folder instead of files.
    """

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
    pretrained: str | None = option(
        None,
        PretrainedFolder(),
        "Folder of a BERT or RoBERTa to train further, with its vocabulary, sizes and weights.",
    )
    vocabulary: str | None = option(
        None,
        DataFile(),
        "BERT's vocab.txt, or a tokenizer.json. Default: WordPieces are learned from the text.",
    )
    vocab_size: int = option(8000, at_least(1), "WordPieces to learn, at most.")
    lowercase: bool = option(True, bool, "Lower-case the text and strip its accents.")
    pairs: bool = option(
        True,
        bool,
        "Learn from pairs of sentences too, as BERT; false learns from masked words alone, as "
        "RoBERTa.",
    )
    short: float = option(0.1, FRACTION, "Share of pairs that are cut to a random, shorter length.")
    masks: str = option("tokens", click.Choice(KINDS), "Unit that is masked as a whole.")
    mask_share: float = option(0.15, PART, "Share of tokens that the model must predict.")
    max_length: int = option(128, at_least(5), "Tokens of a row, special tokens included.")
    positions: int = option(
        512,
        at_least(5),
        "Learned positions of the model; choose more than --max-length to train on longer rows "
        "later.",
    )
    position_kind: str | None = position_kind_option("the model", "learned")
    num_layers: int = option(4, at_least(1), "Transformer blocks of the encoder.")
    hidden_dim: int = option(256, at_least(1), "Size of the encoder's vectors.")
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
        0.1, MOST_OF_FRACTION, "Dropout rate of embeddings and sublayer outputs."
    )
    attention_dropout: float = option(0.1, MOST_OF_FRACTION, "Dropout rate of attention weights.")
    batch_size: int = option(32, at_least(1), "Rows in a batch.")
    passes: int = option(10, at_least(1), "Passes over the sentences (epochs).")
    learning_rate: float = option(5e-4, POSITIVE, "Learning rate at the end of warm-up.")
    schedule: str = option("linear", click.Choice(SCHEDULES), "Learning rate after warm-up.")
    optimizer: str = option("adamw", click.Choice(OPTIMIZERS), "Optimizer; the paper's is adamw.")
    weight_decay: float | None = option(0.01, NOT_NEGATIVE, "Decoupled weight decay of matrices.")

    USUAL = ("vocab_size", "num_layers", "hidden_dim")

    def make(self) -> Task:
        from seqkeras.training.parts import bert_pretraining as parts

        return Task.of(
            self,
            parts.BertPretrainingReading,
            parts.BertPretrainingModelling,
            parts.BertPretrainingScoring,
        )

    def __init__(self, **values: Any):
        super().__init__(**values)
        if self.form is None:
            records = self.given_records()
            object.__setattr__(self, "form", form_of(records) if records else "lines")

    def given_records(self) -> str | None:
        """Return the folder of records that stands in place of files; None without one."""
        return next(filter(is_records, self.files or ()), None)

    def without_effect(self) -> list[str]:
        """Return the options that were given, and that a folder of records decides, as it stands in
        place of files: names as the command line has them."""
        return [shown(name) for name in OF_TEXT if self.given_records() and self.is_given(name)]

    def _problems_of_records(self, records):
        if len(self.files) > 1:
            yield "FILES: a folder of records stands alone; leave the other files out."
        if self.validation is None and self.form != form_of(records):
            yield (
                f"--form {self.form}: the documents of {records} are {form_of(records)}; leave it "
                "out, or give the files."
            )

    def problems(self, of: Options) -> Iterable[str]:
        records = self.given_records()
        if records is not None:
            yield from self._problems_of_records(records)
        if self.pretrained is not None:
            for name in OF_SCRATCH:
                if self.is_given(name):
                    yield f"{shown(name)}: --pretrained brings its own; leave it out."
            if self.start_from is not None:
                yield "--start-from and --pretrained: choose one."
        elif self.position_kind not in (None, "learned"):
            if self.is_given("positions"):
                yield (
                    f"--positions: --position-kind {self.position_kind} reads any length; leave it "
                    "out, or choose --position-kind learned."
                )
        elif self.max_length > self.positions:
            yield (
                f"--max-length {self.max_length}: the model has fewer --positions, "
                f"{self.positions}; choose at least as many."
            )
        if self.hidden_dim % self.num_heads:
            yield (
                f"--num-heads must divide --hidden-dim; received {self.num_heads} and "
                f"{self.hidden_dim}."
            )
        if self.start_from is not None and self.vocabulary is not None:
            yield "--start-from brings its vocabulary; leave --vocabulary out."
