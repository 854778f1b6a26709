"""`seqkeras train question-answering`: its options, and what it is made of."""

from collections.abc import Iterable

import click

from seqkeras.data.squad import OFFSETS
from seqkeras.training.options import (
    DataFile,
    FitOptions,
    Number,
    Options,
    argument,
    at_least,
    option,
    part,
)
from seqkeras.training.options.calibration import CalibrationOptions
from seqkeras.training.options.held_out import held_out_option
from seqkeras.training.options.pretrained import PretrainedOptions
from seqkeras.training.options.spaces import CHOICE, DROPOUT, OTHER_SIZE, SIZE
from seqkeras.training.task import Task

MODELS = ("encoder", "bidaf")
OF_BIDAF = (
    "vocab_size",
    "min_count",
    "lowercase",
    "embedding_dim",
    "units",
    "character_dim",
    "character_filters",
    "word_length",
)


class QuestionAnsweringOptions(FitOptions, task="question-answering"):
    """Answer questions with a span of a context: SQuAD 1.1 and 2.0.

    Your file looks like this (.jsonl, an object a line, as Hugging Face has it; the published .json
    of SQuAD is read as it is):

        {"question": "Where is it?", "context": "It is in Oslo.",
         "answers": {"text": ["Oslo"], "answer_start": [9]}}

    each object on one line. A question without an answer has empty lists, in .json "is_impossible":
    true; the model then learns to give no answer, by a margin that is tuned on the validation file.

    A context is read in windows of --max-length tokens, question included, that begin --stride
    tokens apart. --pretrained names the encoder; --model bidaf learns from
    the file alone, by words and their characters, and always answers.
    """

    file: str = argument(DataFile(), "Training file: .json in SQuAD's form, or .jsonl.")
    validation: str | None = option(None, DataFile(), "Validation file. Default: contexts of FILE.")
    held_out: float | None = held_out_option("FILE's contexts")
    tuning: PretrainedOptions = part(PretrainedOptions)
    surety: CalibrationOptions = part(CalibrationOptions)
    offsets: str = option(
        "characters",
        click.Choice(OFFSETS),
        "Unit that answer_start counts; bytes are bytes of UTF-8.",
    )
    skip_bad: bool = option(False, bool, "Leave out unusable questions and report their number.")
    model: str = option(
        "encoder",
        click.Choice(MODELS),
        "Model: the encoder of --pretrained, or BiDAF, which is trained from scratch.",
        search=CHOICE,
    )
    max_length: int | None = option(
        None,
        at_least(8),
        "Tokens of a window, question included (default: 384); for BiDAF words of a context "
        "(default: 400).",
    )
    stride: int = option(128, at_least(1), "Tokens between the starts of two windows.")
    question_length: int = option(64, at_least(1), "Tokens, or words, of a question, at most.")
    answer_length: int = option(30, at_least(1), "Tokens, or words, of an answer, at most.")
    dropout: float = option(
        0.2,
        Number(0, 1, max_open=True),
        "Dropout rate of BiDAF's layers, or before the logits of --pretrained.",
        search=DROPOUT,
    )
    batch_size: int = option(32, at_least(1), "Windows, or contexts, in a batch.")
    learning_rate: float = option(
        1e-3, Number(0, min_open=True), "Learning rate at the end of warm-up."
    )
    passes: int = option(10, at_least(1), "Passes over the training questions (epochs).")
    vocab_size: int = option(
        30_000, at_least(3), "Words that BiDAF knows: the most frequent ones.", search=OTHER_SIZE
    )
    min_count: int = option(1, at_least(1), "Occurrences from which on BiDAF knows a word.")
    lowercase: bool = option(True, bool, "Lower-case the words that BiDAF reads.")
    embedding_dim: int = option(
        100, at_least(1), "Size of BiDAF's word embeddings.", search=OTHER_SIZE
    )
    units: int = option(
        100, at_least(1), "Size of the state of BiDAF's LSTMs in each direction.", search=SIZE
    )
    character_dim: int = option(16, at_least(1), "Size of BiDAF's character embeddings.")
    character_filters: int = option(100, at_least(1), "Character convolution filters of BiDAF.")
    word_length: int = option(16, at_least(1), "Characters that BiDAF reads of a word, at most.")

    OF_SCRATCH = OF_BIDAF

    def make(self) -> Task:
        from seqkeras.training.parts import question_answering as parts

        return Task.of(
            self,
            parts.QuestionAnsweringReading,
            parts.QuestionAnsweringModelling,
            parts.QuestionAnsweringScoring,
            parts.QuestionAnsweringCalibrating,
        )

    def problems(self, command: Options) -> Iterable[str]:
        if self.model == "encoder" and self.pretrained is None:
            yield (
                "--pretrained is missing: the folder of an encoder; or choose --model bidaf, which "
                "learns from FILE alone."
            )
        if self.model == "bidaf" and self.pretrained is not None:
            yield "--model bidaf learns from FILE alone; leave --pretrained out."
        if self.model == "encoder" and self.window <= self.question_length + 4:
            yield (
                f"--max-length {self.window} must leave room for a context behind "
                f"--question-length {self.question_length} and special tokens."
            )

    @property
    def window(self) -> int:
        """Tokens of a window, or words of a context."""
        return self.max_length or (384 if self.model == "encoder" else 400)
