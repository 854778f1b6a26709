"""`seqkeras train prompt-answer`: its options, and what it is made of."""

from typing import ClassVar

import click

from seqkeras.training.options import (
    FRACTION,
    POSITIVE,
    DataFile,
    FitOptions,
    Number,
    argument,
    at_least,
    option,
)
from seqkeras.training.options.held_out import held_out_option
from seqkeras.training.options.pretrained import LanguageModelFolder
from seqkeras.training.task import Task
from seqkeras.training.tasks.language_model import MASKS


class PromptAnswerOptions(FitOptions, task="prompt-answer"):
    """Tune a language model to answer prompts: questions, dialogues with turns, summaries.

    Your file looks like this (.jsonl; .csv and .tsv have the columns prompt and answer):

        {"prompt": "Name a primary colour.", "answer": "Red."}
        {"messages": [{"role": "user", "content": "Hello!"},
                      {"role": "assistant", "content": "Good morning."}]}

    each object on one line. The loss counts the answers alone. --start-from names the model: a
    run of language-model or of this task, or a GPT-2 folder of Hugging Face.
    """

    file: str = argument(DataFile(), "Training file: .jsonl, .csv or .tsv.")
    start_from: str | None = option(
        None, LanguageModelFolder(), "Run, or a GPT-2 folder of Hugging Face, whose model is tuned."
    )
    validation: str | None = option(None, DataFile(), "Validation file. Default: lines of FILE.")
    held_out: float | None = held_out_option("FILE's lines")
    prompt_column: str = option("prompt", str, "Column, or key, of prompts.")
    answer_column: str = option("answer", str, "Column, or key, of answers.")
    unknown_targets: float = option(
        0.01,
        FRACTION,
        "Largest share of unknown tokens that the targets may hold; above it nothing is trained, "
        "because no answer can hold an unknown token.",
    )
    user: str | None = option(
        None,
        str,
        'Text before a turn of the user. Default: "User:" and a new line, or the text of the run '
        "of --start-from.",
    )
    assistant: str | None = option(
        None,
        str,
        'Text before a turn of the assistant. Default: "Assistant:" and a new line, or the text of '
        "the run of --start-from.",
    )
    system: str | None = option(
        None,
        str,
        'Text before a turn of the system. Default: "System:" and a new line, or the text of the '
        "run of --start-from.",
    )
    turn_end: str | None = option(
        None,
        str,
        "Text behind each turn. Default: a new line, or the text of the run of --start-from.",
    )
    mask: str | None = option(
        None,
        click.Choice(MASKS),
        "Tokens that a prompt's token sees: the past (causal), or the whole prompt (prefix). "
        "Default: the value in --start-from.",
    )
    max_length: int | None = option(
        None, at_least(2), "Tokens of a prompt and its answer. Default: the model's limit."
    )
    dropout: float | None = option(
        None, Number(0, 1, max_open=True), "Dropout rate of the model. Default: unchanged."
    )
    batch_size: int = option(8, at_least(1), "Examples in a batch.")
    learning_rate: float = option(1e-4, POSITIVE, "Learning rate at the end of warm-up.")

    REQUIRED: ClassVar = {
        "start_from": "a run of language-model, or a GPT-2 folder of Hugging Face"
    }
    USUAL = ("prompt_column", "answer_column")

    def make(self) -> Task:
        from seqkeras.training.parts import prompt_answer as parts

        return Task.of(
            self,
            parts.PromptAnswerReading,
            parts.PromptAnswerModelling,
            parts.PromptAnswerScoring,
        )
