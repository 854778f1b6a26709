"""`seqkeras train bert-pretraining`: its options, and what it is made of."""

from collections.abc import Iterable

import click

from seqkeras.data.masking import KINDS
from seqkeras.training.options import (
    FRACTION,
    NOT_NEGATIVE,
    OPTIMIZERS,
    POSITIVE,
    SCHEDULES,
    DataFile,
    FitOptions,
    Options,
    at_least,
    option,
    part,
    shown,
)
from seqkeras.training.options.documents import PART, BlockOptions, DocumentOptions
from seqkeras.training.options.positions import position_kind_option
from seqkeras.training.options.pretrained import PretrainedFolder
from seqkeras.training.options.spaces import LAYERS
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


class BertPretrainingOptions(FitOptions, task="bert-pretraining"):
    """Train a BERT on plain text, by masked words and pairs of sentences.

    Your file looks like this: a sentence, or a paragraph, a line, and an empty line between two
    documents; in UTF-8, plain or .gz. Several files are read one behind the other.

        The old house is here.
        Nobody lives in it.

        She left Oslo in May.
        ...

    Books have other lines: with --form prose a paragraph may take several lines, and three empty
    lines end a document. The model learns to predict masked words, and whether one text follows
    another; with --pairs false it learns the words alone, as RoBERTa does. A twentieth of the
    documents is held out for validation. The text is cut into tokens once, and the records are
    written to a folder beside the run; further runs take that folder instead of files.
    """

    documents: DocumentOptions = part(DocumentOptions)
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
    positions: int = option(
        512,
        at_least(5),
        "Learned positions of the model; choose more than --max-length to train on longer rows "
        "later.",
    )
    position_kind: str | None = position_kind_option("the model", "learned")
    num_layers: int = option(4, at_least(1), "Transformer blocks of the encoder.", search=LAYERS)
    blocks: BlockOptions = part(BlockOptions)
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

    def problems(self, command: Options) -> Iterable[str]:
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
