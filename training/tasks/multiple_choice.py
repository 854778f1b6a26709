"""`seqkeras train multiple-choice`: its options, and what it is made of."""

from typing import ClassVar

from seqkeras.training.options import (
    DataFile,
    FitOptions,
    Names,
    Number,
    argument,
    at_least,
    option,
    part,
)
from seqkeras.training.options.calibration import CalibrationOptions
from seqkeras.training.options.held_out import held_out_option
from seqkeras.training.options.pretrained import PooledOptions
from seqkeras.training.options.spaces import DROPOUT
from seqkeras.training.task import Task


class MultipleChoiceOptions(FitOptions, task="multiple-choice"):
    """Choose the right one of several choices for a text: SWAG, ARC, exams.

    Your file looks like this (.csv; .tsv with tabs; empty choices at the end are none):

        question,A,B,C,D,answer
        Which of these is cold?,ice,fire,,,A
        Which of these barks?,a cat,a bird,a fish,a dog,D

    Or .jsonl with an object a line: {"text": "...", "choices": ["...", "..."], "answer": 1}, which
    counts from 0. SWAG and ARC are read as published, and as .jsonl of Hugging Face;
    --text-column, --choice-columns and --answer-column name other columns.

    Each choice is read behind the text as a pair by the encoder of --pretrained.
    """

    file: str = argument(DataFile(), "Training file: .csv, .tsv or .jsonl.")
    validation: str | None = option(None, DataFile(), "Validation file. Default: rows of FILE.")
    held_out: float | None = held_out_option("FILE's rows")
    tuning: PooledOptions = part(PooledOptions)
    surety: CalibrationOptions = part(CalibrationOptions)
    text_column: str = option("text", str, "Column, or key, of texts.")
    choice_columns: tuple = option((), Names(), "Columns of choices, in their order.")
    answer_column: str = option(
        "answer",
        str,
        "Column of the right choice: the name of the choice's column, or its index from 0.",
    )
    skip_bad: bool = option(False, bool, "Leave out unusable rows and report their number.")
    max_length: int | None = option(
        None, at_least(5), "Tokens of a text with a choice; the rest is cut off. Default: 128."
    )
    dropout: float = option(
        0.1, Number(0, 1, max_open=True), "Dropout rate before the logits.", search=DROPOUT
    )

    REQUIRED: ClassVar = {"pretrained": "the folder of the encoder that reads texts and choices"}
    USUAL = ("validation", "text_column", "choice_columns", "answer_column")

    def make(self) -> Task:
        from seqkeras.training.parts import multiple_choice as parts

        kinds = parts.ChoiceReading, parts.ChoiceModelling, parts.ChoiceScoring
        return Task.of(self, *kinds, parts.ChoiceCalibrating)
