"""The run of a task before it is trained: its record, and real inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.runs import RunFiles

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.task import Task


def run_files(
    task: Task,
    folder: Path,
    examples: Sequence[Any],
    validation: Sequence[Any],
    tokenizers: Mapping[str, Tokenizer],
) -> RunFiles:
    """Return the `seqkeras.runs.RunFiles` of a task, without a model.

    Args:
        task: a `seqkeras.training.task.Task`.
        folder: a `Path`, the run's; nothing is written.
        examples: examples of training.
        validation: the examples that stay with the run.
        tokenizers: role -> tokenizer.
    """
    record = task.reading.record(examples, tokenizers)
    is_text = record["pipeline"] == "Translate" and "source" in tokenizers
    text = "text" if is_text else "input"
    validation = [
        {text: example.text} | ({} if example.target is None else {"target": example.target})
        for example in validation
    ]
    return RunFiles.of(
        folder,
        tokenizers=tokenizers,
        task=task.name,
        validation=validation,
        evaluation=task.reading.evaluation(),
        **record,
    )
