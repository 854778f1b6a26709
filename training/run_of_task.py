"""The run of a task before it is trained: its record, and real inputs that its pipeline takes."""

import dataclasses

from seqkeras.runs import RunError, RunFiles


def run_files(task, folder, examples, validation, tokenizers):
    """Return the `seqkeras.runs.RunFiles` of a task, without a model.

    Args:
        task: a `seqkeras.training.task.Task`.
        folder: a `Path`, the run's; nothing is written.
        examples: examples of training.
        validation: the examples that stay with the run.
        tokenizers: role -> tokenizer.
    """
    record = task.record(examples)
    text = "text" if record["pipeline"] == "Translate" else "input"
    validation = [
        {text: example.text} | ({} if example.target is None else {"target": example.target})
        for example in validation
    ]
    return RunFiles.of(
        folder,
        tokenizers=tokenizers,
        task=task.name,
        validation=validation,
        evaluation=task.evaluation(),
        **record,
    )


def with_examples_that_fit(task, run, folder, validation, answer):
    """Return the run with those validation examples that a pipeline takes as they are."""
    fitting = [
        content
        for content, example in zip(run.validation, validation, strict=True)
        if answer.fits(example.text)
    ]
    if not fitting:
        raise RunError(task.why_none_fits(run, folder))
    return dataclasses.replace(run, validation=fitting)
