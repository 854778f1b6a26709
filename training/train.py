"""A training from its options to a run that export takes."""

import contextlib
import dataclasses
import shlex

from seqkeras.locking import locked
from seqkeras.runs import CHECKPOINT, MODEL, SCORES
from seqkeras.terminal import one_line
from seqkeras.training.console import console, progress_bar
from seqkeras.training.first_weights import take_weights
from seqkeras.training.fit import fit, ignored_by
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
        _train(task, folder, overwrite, devices)


def _train(task, folder, overwrite, devices):
    task.folder = folder
    if is_finished(folder, task.name, task.options, overwrite):
        console.print(
            one_line(f"{folder}: finished already, with these options; see {folder / SCORES}")
        )
        return
    if not devices.is_chief:
        devices.meet()  # from here on the chief's options and tokenizers are there
        overwrite = False
        require_begun(folder, task.name, task.options)
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
    batches = task.batches(examples, run)
    looked_at = Validation(task, validation, run, answer)
    options, loss = task.options, task.loss()
    num_steps = options.max_steps or -(-task.num_steps(batches) // options.gradient_accumulation)
    batches.few_shapes |= options.xla
    if options.gradient_accumulation > 1:
        batches = batches.in_groups(options.gradient_accumulation, ignored_by(loss))

    def prepare(model):
        if not overwrite and (folder / CHECKPOINT).exists():
            return
        if _takes_weights(options):
            trained = task.trained(model)
            take_weights(
                trained, lambda run: task.trained(task.model(run)), run, options.start_from
            )
        looked_at.require_best(model)

    def begin():
        open_run(folder, task.name, options, overwrite)
        run.write_tokenizers(folder)
        task.begun(folder)

    if devices.num_processes > 1:  # which meet before a model is made
        if devices.is_chief:
            begin()
            devices.meet()
        begin = None
    model = fit(
        lambda: task.model(run),
        loss,
        batches.for_fit,
        num_steps,
        options,
        folder,
        metrics=task.metrics(),
        loss_weights=task.loss_weights(),
        validation=looked_at,
        tokens_from=batches.tokens_from,
        prepare=prepare,
        begin=begin,
        devices=devices,
    )
    if not devices.is_chief:
        devices.part()
        return
    model = task.trained(model)
    scores = task.measure(model, validation, run)
    run, found = task.tuned(
        run,
        answered(
            task.tests(validation),
            lambda texts, advance: answer(model, texts, advance=advance),
        ),
    )
    scores |= task.scores(found)
    task.draw(model, run, folder / task.picture)
    run.write(folder, model, scores)
    for name in (CHECKPOINT, BEST, TEACHER):
        (folder / name).unlink(missing_ok=True)
    devices.part()
    _report(task, folder, scores)


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
