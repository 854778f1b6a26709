"""`seqkeras train denoising-pretraining`: its options, and what it is made of."""

from collections.abc import Iterable

import click

from seqkeras.data.denoising import most_spans
from seqkeras.tokenizers.sentinels import NUM_SENTINELS
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
    at_least,
    option,
    part,
    shown,
)
from seqkeras.training.options.documents import PART, BlockOptions, DocumentOptions
from seqkeras.training.options.positions import position_kind_option
from seqkeras.training.options.pretrained import TranslatorFolder
from seqkeras.training.options.spaces import LAYERS
from seqkeras.training.task import Task

SHARES = {"spans": 0.15, "infilling": 0.3}  # noise -> the papers' share of tokens
OF_START = (  # what --start-from brings
    "lowercase",
    "num_layers",
    "hidden_dim",
    "num_heads",
    "feed_forward_dim",
    "pre_norm",
    "position_kind",
    "attention_window",
    "dropout",
    "attention_dropout",
    "activation_dropout",
)


class DenoisingFolder(TranslatorFolder):
    """The folder of an encoder-decoder that restores texts."""

    missing = "no encoder-decoder; expected a finished run, or a T5 folder of Hugging Face."

    def is_run(self, path: object) -> bool:
        return False


class DenoisingPretrainingOptions(FitOptions, task="denoising-pretraining"):
    """Train an encoder-decoder on plain text, to restore what is damaged.

    Your file looks like this: a sentence, or a paragraph, a line, and an empty line between two
    documents; in UTF-8, plain or .gz. Several files are read one behind the other.

        The old house is here.
        Nobody lives in it.

        She left Oslo in May.
        ...

    Spans of tokens are replaced by sentinels, and the model writes the spans, as T5 does; with
    --noise infilling each span becomes a mask, and the model writes the whole text, as BART does.
    A twentieth of the documents is held out for validation. The text is cut into tokens once, and
    the records are written to a folder beside the run; further runs take that folder instead of
    files. translation --start-from RUN begins with the model and its tokens.
    """

    documents: DocumentOptions = part(DocumentOptions)
    vocabulary: str | None = option(
        None, DataFile(), "File tokenizer.json. Default: unigram pieces are learned from the text."
    )
    lowercase: bool = option(False, bool, "Lower-case the text, and so answers.")
    start_from: str | None = option(
        None,
        DenoisingFolder(),
        "Run of this task, or T5 folder of Hugging Face, to train further, with its tokens, sizes "
        "and weights.",
    )
    noise: str = option(
        "spans",
        click.Choice([*SHARES]),
        "Damage of a text: spans that become a sentinel each (T5), or infilling, spans of Poisson "
        "lengths that become a mask each (BART).",
    )
    noise_share: float | None = option(
        None,
        PART,
        "Share of tokens that is damaged. Default: "
        f"{SHARES['spans']}; with --noise infilling {SHARES['infilling']}.",
    )
    span_length: float = option(3.0, Number(1, 100), "Mean length of a span, in tokens.")
    shuffle_sentences: bool = option(
        False, bool, "Shuffle the sentences of a row, too, with --noise infilling, as BART."
    )
    num_layers: int = option(3, at_least(1), "Layers on each side.", search=LAYERS)
    blocks: BlockOptions = part(BlockOptions)
    activation_dropout: float = option(0.0, FRACTION, "Dropout rate in feed-forward layers.")
    pre_norm: bool = option(False, bool, "Normalise inputs of sublayers, not outputs.")
    position_kind: str | None = position_kind_option("the model", "sinusoid")
    batch_size: int = option(32, at_least(1), "Rows in a batch.")
    passes: int = option(10, at_least(1), "Passes over the rows (epochs).")
    learning_rate: float = option(1e-3, POSITIVE, "Learning rate at the end of warm-up.")
    warmup_steps: int = option(400, at_least(0), "Steps up to the full learning rate.")
    schedule: str = option("linear", click.Choice(SCHEDULES), "Learning rate after warm-up.")
    optimizer: str = option("adamw", click.Choice(OPTIMIZERS), "Optimizer.")
    weight_decay: float | None = option(0.01, NOT_NEGATIVE, "Decoupled weight decay of matrices.")

    USUAL = ("vocab_size", "noise", "num_layers", "hidden_dim")

    def make(self) -> Task:
        from seqkeras.training.parts import denoising_pretraining as parts

        return Task.of(
            self,
            parts.DenoisingPretrainingReading,
            parts.DenoisingPretrainingModelling,
            parts.DenoisingPretrainingScoring,
        )

    @property
    def share(self) -> float:
        """The share of tokens that is damaged."""
        return SHARES[self.noise] if self.noise_share is None else self.noise_share

    def problems(self, command: Options) -> Iterable[str]:
        if self.shuffle_sentences and self.noise != "infilling":
            yield (
                "--shuffle-sentences is for --noise infilling, whose target is the whole text; "
                "leave it out, or choose infilling."
            )
        most = most_spans(command.max_length, self.share, self.span_length)
        if self.noise == "spans" and most > NUM_SENTINELS:
            yield (
                f"--noise spans: rows of --max-length {command.max_length} have up to {most} "
                f"spans, and there are {NUM_SENTINELS} sentinels; choose a larger --span-length, "
                "or a smaller --noise-share."
            )
        for name in OF_START if self.start_from is not None else ():
            if self.is_given(name):
                yield f"{shown(name)}: --start-from brings its own; leave it out."
