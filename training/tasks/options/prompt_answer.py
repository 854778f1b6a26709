"""Options of `python -m training prompt-answer`."""

import dataclasses

import click

from training.options import (
    FRACTION,
    POSITIVE,
    DataFile,
    FitOptions,
    Number,
    argument,
    at_least,
    option,
)
from training.tasks.options.pretrained import LanguageModelFolder


@dataclasses.dataclass(frozen=True)
class PromptAnswerOptions(FitOptions):
    """A language model is tuned to answer prompts: questions, dialogues with turns, summaries.

    Your file looks like this (.jsonl; .csv and .tsv have the columns prompt and answer):

    \b
        {"prompt": "Name a primary colour.", "answer": "Red."}
        {"messages": [{"role": "user", "content": "Hello!"},
                      {"role": "assistant", "content": "Good morning."}]}

    each object on one line. The loss is that of the answers alone. --start-from names the model: a
    run of language-model or of this task, or a GPT-2 folder of Hugging Face.
    """

    file: str = argument(DataFile(), "Of training: .jsonl, .csv or .tsv.")
    start_from: str | None = option(
        None, LanguageModelFolder(), "Run, or GPT-2 folder of Hugging Face."
    )
    validation: str | None = option(
        None, DataFile(), "File of validation; without it, some lines of FILE are held out."
    )
    held_out: float = option(0.1, FRACTION, "Share of FILE's lines that are held out.")
    prompt_column: str = option("prompt", str, "Name of the column, or key, of prompts.")
    answer_column: str = option("answer", str, "Name of that of answers.")
    unknown_targets: float = option(
        0.01,
        FRACTION,
        "Largest share of unknown tokens in targets, which no answer holds; with more, nothing is "
        "trained.",
    )
    user: str | None = option(
        None,
        str,
        'What stands before a turn of the user; by default "User:" and a new line, or '
        "what the run of --start-from has; so are the next three.",
    )
    assistant: str | None = option(None, str, "What stands before one of the assistant.")
    system: str | None = option(None, str, "What stands before one of the system.")
    turn_end: str | None = option(None, str, "What stands behind a turn that is not the last.")
    max_length: int | None = option(
        None, at_least(2), "Tokens of a prompt and its answer; without it as many as the model has."
    )
    dropout: float | None = option(
        None, Number(0, 1, max_open=True), "Of the model; without it, it stays as it is."
    )
    batch_size: int = option(8, at_least(1), "Examples in each step.")
    learning_rate: float = option(1e-4, POSITIVE, "At the end of the warm-up.")

    def check(self):
        if self.start_from is None:
            raise click.UsageError(
                "--start-from is missing: a run of language-model, or a GPT-2 folder of Hugging "
                "Face."
            )
