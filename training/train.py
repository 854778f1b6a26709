"""A training from its options to a run that export takes."""

import contextlib
import dataclasses
import shlex
from typing import Any, NamedTuple

from seqkeras.locking import locked
from seqkeras.runs import CHECKPOINT, MODEL, SCORES
from seqkeras.terminal import one_line
from seqkeras.training.console import console, progress_bar
from seqkeras.training.first_weights import take_weights
from seqkeras.training.fit import Plan, fit, ignored_by
from seqkeras.training.options import RunFolder
from seqkeras.training.run import (
    BEST,
    CURVES,
    HISTORY,
    SAMPLES,
    TEACHER,
    is_finished,
    kept_tokenizers,
    open_run,
    require_begun,
)
from seqkeras.training.strategies import strategy
from seqkeras.training.unknown_tokens import require_known_targets, tell_unknown_tokens
from seqkeras.training.validation import Validation


def train(task, folder, overwrite=False):
    """Train a task, or continue where an earlier process stopped; a finished run is left alone.

    What can not be trained is refused before anything is written.

    Args:
        task: a `seqkeras.training.task.Task`.
        folder: a `Path`, the run's.
        overwrite: remove what an earlier run left.

    Raises:
        InUseError: if another process writes the folder.
        RunError: if the folder holds something else, or the training fails.
    """
    devices = strategy(task.options.strategy)
    devices.refuse(task.options)
    with locked(folder) if devices.is_chief else contextlib.nullcontext(), devices.running():
        if is_finished(folder, task.name, task.options, overwrite):
            console.print(
                one_line(f"{folder}: finished already, with these options; see {folder / SCORES}")
            )
            return
        if not devices.is_chief:
            devices.meet()  # from here on the chief's options and tokenizers are there
            overwrite = False
            require_begun(folder, task.name, task.options)
        task.folder = folder
        data = _read(task, folder, overwrite, devices)
        model = fit(_plan(task, folder, overwrite, devices, data))
        if devices.is_chief:
            scores = _finish(task, folder, model, data)
        devices.part()
        if devices.is_chief:
            _report(task, folder, scores)


class _Data(NamedTuple):
    """What a training reads.

    Attributes:
        examples: of training.
        validation: examples of validation.
        run: the `seqkeras.runs.RunFiles` that is trained.
        answer: what answers while it is, of `seqkeras.training.answering`.
    """

    examples: Any
    validation: list
    run: Any
    answer: Any


def _read(task, folder, overwrite, devices):
    """Return the `_Data` of a task, and tell unknown tokens."""
    examples, validation = task.read()
    if devices.num_replicas > 1:
        task.refuse_replicas()
    tokenizers = None if overwrite else kept_tokenizers(folder, devices.is_chief)
    kept = task.kept(validation)
    tokenizers = tokenizers or task.tokenizers(examples)
    validation, kept = (task.with_tokenizers(part, tokenizers) for part in (validation, kept))
    run, answer = task.prepared(folder, examples, kept, tokenizers)
    unknown = tell_unknown_tokens(task, examples, tokenizers, "training")
    require_known_targets(task, unknown, getattr(task.options, "unknown_targets", 1.0))
    tell_unknown_tokens(task, validation, tokenizers, "validation")
    return _Data(examples, validation, run, answer)


def _plan(task, folder, overwrite, devices, data):
    """Return the `Plan` of a task's training."""
    options, run, batches = task.options, data.run, task.batches(data.examples, data.run)
    validation, loss = Validation(task, data.validation, run, data.answer), task.loss()
    steps = options.max_steps or -(-task.num_steps(batches) // options.gradient_accumulation)
    batches.few_shapes |= options.xla
    if options.gradient_accumulation > 1:
        batches = batches.in_groups(options.gradient_accumulation, ignored_by(loss))

    def prepare(model):
        if not overwrite and (folder / CHECKPOINT).exists():
            return
        if _takes_weights(options):
            trained = task.trained(model)
            take_weights(
                trained,
                lambda run: task.trained(task.model(run)),
                run,
                options.start_from,
                hasattr(options, "pretrained"),
            )
        validation.require_best(model)

    def begin():
        open_run(folder, task.name, options, overwrite)
        run.write_tokenizers(folder)
        task.begun(folder)

    if devices.num_processes > 1 and devices.is_chief:  # they meet before a model is made
        begin()
        devices.meet()
    return Plan(
        lambda: task.model(run),
        loss,
        batches.for_fit,
        steps,
        options,
        folder,
        metrics=task.metrics(),
        loss_weights=task.loss_weights(),
        validation=validation,
        tokens_from=batches.tokens_from,
        prepare=prepare,
        begin=begin if devices.num_processes == 1 else None,
        devices=devices,
    )


def _finish(task, folder, model, data):
    """Score a model that is trained, write its run, and return the scores."""
    model = task.trained(model)
    scores = task.measure(model, data.validation, data.run)
    run, found = task.tuned(
        data.run,
        answered(
            task.tests(data.validation),
            lambda texts, advance: data.answer(model, texts, advance=advance),
        ),
    )
    scores |= task.scores(found)
    task.draw(model, run, folder / task.picture)
    run.write(folder, model, scores)
    for name in (CHECKPOINT, BEST, TEACHER):
        (folder / name).unlink(missing_ok=True)
    return scores


def _takes_weights(options):
    """Return whether the frame reads `start_from`, and not the task, which may read other folders
    too."""
    [field] = [field for field in dataclasses.fields(options) if field.name == "start_from"]
    return options.start_from is not None and type(field.metadata["type"]) is RunFolder


def answered(tests, answer):
    """Return a dictionary: name -> (examples, answers) of a task's tests, with a progress bar.

    Args:
        tests: yields (name, list of examples).
        answer: (texts, advance) -> answers.
    """
    found = {}
    with progress_bar() as bar:
        for name, examples in tests:
            part = bar.add_task(f"scoring {name}", total=len(examples))
            answers = answer(
                [example.text for example in examples],
                lambda rows, part=part: bar.advance(part, rows),
            )
            found[name] = examples, answers
    return found


def _report(task, folder, scores):
    if (table := task.table(scores)) is not None:
        console.print(table)
    names = (MODEL, SCORES, HISTORY, CURVES, SAMPLES, task.picture)
    made = [name for name in names if (folder / name).exists()]
    console.print(
        f"{one_line(folder)}: {', '.join(made[:-1])} and {made[-1]} are there; "
        f"{task.summary(scores)}"
    )
    for run in task.runs(folder):
        command = shlex.join([str(run), f"bundles/{run.name}"])
        console.print(f"next: seqkeras export {one_line(command)}")
