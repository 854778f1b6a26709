"""Scores of a run or of a bundle on a user's file, by the metrics of its task.

A run answers by its Keras model, as while it was trained, a bundle by onnxruntime alone.
"""

import dataclasses
from pathlib import Path
from typing import Any

import click

from seqkeras import files
from seqkeras.runs import EVALUATION, MODEL, OPTIONS, RunError, RunFiles, RunRecord
from seqkeras.serving.manifest import MANIFEST
from seqkeras.terminal import one_line
from seqkeras.training.commands import parse_options
from seqkeras.training.options import DataFile
from seqkeras.training.tasks import TASKS

EVALUATE = "evaluate"
BY_PIPELINE = {  # pipeline of a model that no task trained -> the task that scores it
    "Answer": "question-answering",
    "Choose": "multiple-choice",
    "Classify": "classification",
    "FillMask": "bert-pretraining",
    "Forecast": "forecasting",
    "Generate": "language-model",
    "Tag": "tagging",
    "Translate": "translation",
}
BATCH = 256  # inputs that a bundle is given at once


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Options of `seqkeras train evaluate`.

    Args:
        folder: folder of the run or the bundle.
        data: the user's files, as the task takes them.
        precision: precision of a bundle; None is float32.
        out: a file to write the scores to, or None.
        arguments: options of the task, as they stand on the command line.
    """

    folder: Path
    data: tuple[str, ...]
    precision: str | None = None
    out: Path | None = None
    arguments: tuple[str, ...] = ()


def evaluate_command() -> click.Command:
    """Return the click command, which returns an `Evaluation`."""

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
        help="Data file in the form of the training file; repeat it for a task that reads several.",
    )
    @click.option("--precision", help="Precision of a bundle, such as int8. Default: float32.")
    @click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        help="JSON file to write the scores to.",
    )
    @click.pass_context
    def evaluate_folder(context, folder, data, precision, out):
        """Score a run or a bundle on a file.

        The file looks like the one that the task was trained on. How its columns are named, and
        what else reading and scoring need, the run and its bundle remember; the task's own options
        say what differs:

        \b
            seqkeras train evaluate runs/reviews --data test.csv
            seqkeras train evaluate bundles/reviews --data test.tsv --text-column sentence

        The bundle of a model that `save_run` wrote is scored as the task of its pipeline; the
        options of that task say what the columns are.
        """
        if not (folder / MANIFEST).is_file():
            RunRecord.read(folder)  # refuses what is no run, before Keras is loaded
        return Evaluation(folder, data, precision, out, tuple(context.args))

    return evaluate_folder


def evaluate(evaluation: Evaluation) -> dict[str, Any]:
    """Score a run or a bundle: print a table, and return the scores.

    Raises:
        RunError: if the folder is neither, its task reads no files, the model does not take an
            input, or the file for the scores can not be written.
        DataError: if a file can not be read.
    """
    from seqkeras.training.calibration import certainty_in_words, certainty_of
    from seqkeras.training.console import console
    from seqkeras.training.train import answered
    from seqkeras.training.unknown_tokens import tell_unknown_tokens

    if evaluation.out is not None:
        _require_writable(evaluation.out)
    subject = _opened(evaluation)
    task = subject.task
    examples = task.reading.examples_of(evaluation.data, subject.settings)
    name = Path(evaluation.data[0]).name
    tell_unknown_tokens(task, examples, task.reading.known_tokenizers, name)
    try:
        answers = answered(
            [(name, part) for _, part in task.scoring.tests(examples)], subject.answer
        )
    except ValueError as error:  # an input that the model does not take
        raise RunError(f"{evaluation.data[0]}: {error}") from error
    scores = subject.measure(examples) | task.scoring.scores(answers)
    for shown in task.scoring.shown(scores):
        console.print(shown)
    pairs = (pair for both in answers.values() for pair in task.calibrating.certainty(*both))
    if certainty := certainty_of(pairs):
        scores["calibration"] = certainty
        console.print(f"  {certainty_in_words(certainty)}")
    if evaluation.out is not None:
        files.write_json(evaluation.out, scores)
        console.print(one_line(f"{evaluation.out}: the scores are written"))
    console.print(one_line(f"{evaluation.folder} on {name}: {task.scoring.summary(scores)}"))
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
    if run.record.task not in TASKS:
        raise RunError(
            f"{folder}: a run of your own model, {run.record.task!r}; export it, and give the "
            "bundle."
        )
    return _run(folder, run, evaluation.arguments)


def _run(folder, run, arguments):
    from seqkeras.training.answering import answerer
    from seqkeras.training.checkpoint import load_model

    task = _task(folder, run.record.task, OPTIONS, arguments)
    task.reading.source_length = run.record.limits["source_length"]
    task.reading.known_tokenizers = run.tokenizers
    model = load_model(folder / MODEL, "train again", compile=False)
    answer = answerer(run, task.scoring.asked)
    return _Subject(
        task,
        run.record.settings,
        lambda texts, advance: answer(model, texts, advance=advance),
        lambda examples: task.modelling.measure(model, examples, run),
    )


def _bundle(folder, evaluation):
    from seqkeras import serving
    from seqkeras.tokenizers import read_tokenizer
    from seqkeras.training.console import console
    from seqkeras.training.served import served

    try:
        pipeline = serving.load(folder, precision=evaluation.precision)
    except ValueError as error:
        raise RunError(str(error)) from error
    manifest = pipeline.manifest
    name = manifest.task
    if name not in TASKS:
        name = _by_pipeline(folder, manifest)
        console.print(
            one_line(f"{folder}: {manifest.pipeline} of your own model, scored as by {name}")
        )
    task = _task(folder, name, EVALUATION, evaluation.arguments, _context(manifest))
    if task.reading.not_in_bundle:
        raise RunError(f"{folder}: can not be scored: {task.reading.not_in_bundle}; give the run.")
    task.reading.source_length = manifest.limits.source_length
    task.reading.known_tokenizers = {
        role: read_tokenizer(folder / path) for role, path in manifest.tokenizers.items()
    }

    # Nobody knows how much of a prompt may be left out.
    options = {} if manifest.pipeline == "Generate" else {"truncate": True}

    def answer(texts, advance):
        answers = []
        for start in range(0, len(texts), BATCH):
            answers += pipeline([*texts[start : start + BATCH]], **options, **task.scoring.asked)
            advance(len(answers) - start)
        return answers

    def measure(examples):
        if manifest.pipeline != "Generate":
            return {}
        model, run = served(folder, manifest, evaluation.precision)
        return task.modelling.measure(model, examples, run)

    return _Subject(task, manifest.settings, answer, measure)


def _by_pipeline(folder, manifest):
    """Return the name of the task that scores a bundle which no task trained.

    Raises:
        RunError: if there is none.
    """
    name, settings = BY_PIPELINE.get(manifest.pipeline), manifest.settings
    if manifest.pipeline == "Classify" and "words" in manifest.tokenizers:
        name = "trees"
    elif manifest.pipeline == "Classify" and not settings.get("labels"):
        name = "regression"
    elif manifest.pipeline == "Generate" and settings.get("turns"):
        name = "prompt-answer"
    if name is None or settings.get("multi_label"):
        what = "several labels at once" if settings.get("multi_label") else manifest.pipeline
        raise RunError(f"{folder}: no task scores {what}; ask it by serving, and measure answers.")
    return name


def _context(manifest):
    """Return the option of the length that a model of a stream or a series reads, if no run tells
    it."""
    limits = manifest.limits
    lengths = {"Generate": limits.target_length, "Forecast": limits.source_length}
    return {"context": lengths[manifest.pipeline]} if manifest.pipeline in lengths else {}


def _task(folder, name, file, arguments, values=None):
    """Return the task of a run or a bundle, with the options of its file and those given."""
    values = files.read_json(folder / file) if (folder / file).is_file() else values or {}
    return parse_options(EVALUATE, TASKS[name], arguments, values).make()
