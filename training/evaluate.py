"""Scores of a run or of a bundle on a user's file, by the metrics of its task.

A run answers by its Keras model, as while it was trained, a bundle by onnxruntime alone.
"""

import dataclasses
from pathlib import Path

import click

from seqkeras import files
from seqkeras.runs import EVALUATION, MODEL, OPTIONS, RunError, RunFiles
from seqkeras.terminal import one_line
from serving.manifest import MANIFEST
from training.commands import parse_options
from training.options import DataFile
from training.tasks import TASKS

EVALUATE = "evaluate"
BATCH = 256  # inputs that a bundle is given at once


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What `python -m training evaluate` is asked.

    Args:
        folder: of the run or the bundle.
        data: the user's files, as the task takes them.
        precision: of a bundle; None is float32.
        out: a file to write the scores to, or None.
        arguments: options of the task, as they stand on the command line.
    """

    folder: Path
    data: tuple[str, ...]
    precision: str | None = None
    out: Path | None = None
    arguments: tuple[str, ...] = ()


def evaluate_command():
    """The click command, which returns an `Evaluation`."""

    @click.command(
        EVALUATE,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        short_help="Score a run or a bundle on a file.",
    )
    @click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
    @click.option(
        "--data",
        type=DataFile(),
        multiple=True,
        required=True,
        help="File in the form of the training's; again for a task that reads several.",
    )
    @click.option("--precision", help="Of a bundle, such as int8; else float32.")
    @click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        help="JSON file for the scores, beside the table that is printed.",
    )
    @click.pass_context
    def evaluate_folder(context, folder, data, precision, out):
        """Score a run or a bundle on a file.

        The file looks like the one that the task was trained on. How its columns are named, and
        what else reading and scoring need, the run and its bundle remember; the task's own options
        say what differs:

        \b
            python -m training evaluate runs/reviews --data test.csv
            python -m training evaluate bundles/reviews --data test.tsv --text-column sentence
        """
        return Evaluation(folder, data, precision, out, tuple(context.args))

    return evaluate_folder


def evaluate(evaluation):
    """Score a run or a bundle; prints a table, and returns the scores.

    Raises:
        RunError: if the folder is neither, its task reads no files, the model does not take an
            input, or the file for the scores can not be written.
        DataError: if a file can not be read.
    """
    from training.console import console
    from training.train import answered
    from training.unknown_tokens import tell_unknown_tokens

    if evaluation.out is not None:
        _require_writable(evaluation.out)
    subject = _opened(evaluation)
    task = subject.task
    examples = task.examples_of(evaluation.data, subject.settings)
    name = Path(evaluation.data[0]).name
    tell_unknown_tokens(task, examples, task.known_tokenizers, name)
    try:
        found = answered([(name, part) for _, part in task.tests(examples)], subject.answer)
    except ValueError as error:  # an input that the model does not take
        raise RunError(f"{evaluation.data[0]}: {error}") from error
    scores = subject.measure(examples) | task.scores(found)
    if (table := task.table(scores)) is not None:
        console.print(table)
    if evaluation.out is not None:
        files.write_json(evaluation.out, scores)
        console.print(one_line(f"{evaluation.out}: the scores are written"))
    console.print(one_line(f"{evaluation.folder} on {name}: {task.summary(scores)}"))
    return scores


def _require_writable(path):
    """Raise a `RunError` unless a file can be made there; an earlier one stays as it is."""
    aside = files.aside(path)
    try:
        aside.touch()
        aside.unlink()
    except OSError as error:
        raise RunError(
            f"--out {path}: can not be written ({error.strerror}); choose another file."
        ) from error


@dataclasses.dataclass(frozen=True)
class _Subject:
    """A run or a bundle: its task, settings, answers to texts, and scores without answers."""

    task: object
    settings: dict
    answer: object  # (texts, advance) -> answers
    measure: object  # examples -> name -> number


def _opened(evaluation):
    folder = evaluation.folder
    if (folder / MANIFEST).is_file():
        return _bundle(folder, evaluation)
    run = RunFiles.read(folder)
    if evaluation.precision is not None:
        raise RunError(f"{folder}: a run has no --precision; export it, and give the bundle.")
    return _run(folder, run, evaluation.arguments)


def _run(folder, run, arguments):
    from training.answering import answerer
    from training.checkpoint import load_model

    task = _task(folder, run.record.task, OPTIONS, arguments)
    task.source_length = run.record.limits["source_length"]
    task.known_tokenizers = run.tokenizers
    model, answer = load_model(folder / MODEL, "train again", compile=False), answerer(run)
    return _Subject(
        task,
        run.record.settings,
        lambda texts, advance: answer(model, texts, advance=advance),
        lambda examples: task.measure(model, examples, run),
    )


def _bundle(folder, evaluation):
    import serving
    from seqkeras.tokenizers import read_tokenizer
    from training.served import served

    try:
        pipeline = serving.load(folder, precision=evaluation.precision)
    except ValueError as error:
        raise RunError(str(error)) from error
    manifest = pipeline.manifest
    task = _task(folder, manifest.task, EVALUATION, evaluation.arguments)
    if task.not_in_bundle:
        raise RunError(f"{folder}: can not be scored: {task.not_in_bundle}; give the run.")
    task.source_length = manifest.limits.source_length
    task.known_tokenizers = {
        role: read_tokenizer(folder / path) for role, path in manifest.tokenizers.items()
    }

    # Of a prompt nobody knows how much may be left out.
    options = {} if manifest.pipeline == "Generate" else {"truncate": True}

    def answer(texts, advance):
        answers = []
        for start in range(0, len(texts), BATCH):
            answers += pipeline(texts[start : start + BATCH], **options, **task.asked)
            advance(len(answers) - start)
        return answers

    def measure(examples):
        if manifest.pipeline != "Generate":
            return {}
        model, run = served(folder, manifest, evaluation.precision)
        return task.measure(model, examples, run)

    return _Subject(task, manifest.settings, answer, measure)


def _task(folder, name, file, arguments):
    """The task of a run or a bundle, with the options of its file and those given."""
    if name not in TASKS:
        raise RunError(
            f"{folder}: made for the task {name!r}; the tasks that can be scored are "
            f"{', '.join(TASKS)}."
        )
    values = files.read_json(folder / file) if (folder / file).is_file() else {}
    options_class, task_class = TASKS[name]
    options = parse_options(EVALUATE, options_class, arguments, values)
    return task_class()(options)
