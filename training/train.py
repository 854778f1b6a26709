"""A training from its options to a run that export takes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras import files
from seqkeras.data.stored import mapped
from seqkeras.locking import locked
from seqkeras.runs import CHECKPOINT, MODEL, SCORES, RunError
from seqkeras.terminal import one_line
from seqkeras.training.answering import answerer
from seqkeras.training.checkpoint import load_model
from seqkeras.training.console import console, progress_bar
from seqkeras.training.first_weights import take_weights
from seqkeras.training.fit import Plan, fit, ignored_by
from seqkeras.training.options import options_of
from seqkeras.training.options.sizes import told_size
from seqkeras.training.run import (
    BEST,
    CALIBRATION,
    CURVES,
    HISTORY,
    MEMBERS,
    SAMPLES,
    TEACHER,
    is_finished,
    kept_tokenizers,
    open_run,
    require_begun,
)
from seqkeras.training.strategies import strategy
from seqkeras.training.unknown_tokens import require_known_targets, tell_unknown_tokens
from seqkeras.training.validation import Compared, Validation
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.training.task import Task

__all__ = ["train"]


def train(
    task: Task,
    folder: Path,
    overwrite: bool = False,
    report: Callable[[int, list[float], Compared], None] | None = None,
    stepped: Callable[[int, int], None] | None = None,
) -> None:
    """Train a task, or continue where an earlier process stopped; a finished run is left alone.

    What can not be trained is refused before anything is written.

    Args:
        task: a `seqkeras.training.task.Task`.
        folder: path of the run's folder, a `Path`.
        overwrite: whether files of an earlier run are removed.
        report: called with the number and the rank of each look, `Validation.rank`, and what looks
            are compared by; an exception that it raises ends the training. None: no function.
        stepped: called with the number of each step, and of all steps. None: no function.

    Raises:
        InUseError: if another process writes the folder.
        RunError: if the folder holds something else, or the training fails.

    Example:
        >>> import pathlib
        >>> from seqkeras.training.tasks import TASKS
        >>> from seqkeras.training.train import train
        >>> lines = ["text,label", *["nice,good", "dull,bad"] * 20]
        >>> _ = pathlib.Path("reviews.csv").write_text("\\n".join(lines))
        >>> options = {"passes": 1, "batch_size": 16, "baselines": False, "tensorboard": False}
        >>> task = TASKS["classification"](file="reviews.csv", looks=1, **options).make()
        >>> train(task, pathlib.Path("runs/reviews"))
        classification: 36 training and 4 validation examples of 2 labels ... right are ...
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
        task.modelling.folder = folder
        data = _read(task, folder, overwrite, devices)
        if getattr(task.options, "members", 1) > 1:
            model = _members(task, folder, overwrite, devices, data, report, stepped)
        else:
            model = fit(_plan(task, folder, overwrite, devices, data, report, stepped))
        if devices.is_chief:
            scores = _finish(task, folder, model, data)
        devices.part()
        if devices.is_chief:
            _report(task, folder, scores)


@dataclasses.dataclass
class _Data:
    """Data that a training reads.

    Attributes:
        examples: training examples.
        validation: examples of validation.
        kept: those that stay with the run.
        run: the `seqkeras.runs.RunFiles` that is trained; once there is a model, its examples are
            those that fit.
        answer: what answers while it is, of `seqkeras.training.answering`.
    """

    examples: Any
    validation: list
    kept: list
    run: Any
    answer: Any


def _read(task, folder, overwrite, devices):
    """Return the `_Data` of a task, and tell unknown tokens."""
    examples, validation = task.reading.read()
    if size := told_size(task.options):
        console.print(f"  {size}")
    if devices.num_replicas > 1 and (carrying := task.modelling.carries_state()):
        option, other = carrying
        raise RunError(
            f"{option}: not with several devices: each would have to carry the states of its rows "
            f"on; choose {other}, or --strategy one."
        )
    tokenizers = None if overwrite else kept_tokenizers(folder, devices.is_chief)
    kept = task.reading.kept(validation)
    tokenizers = tokenizers or task.reading.tokenizers(examples)
    validation = task.reading.with_tokenizers(validation, tokenizers)
    kept = task.reading.with_tokenizers(kept, tokenizers)
    run, answer = task.prepared(folder, examples, kept, tokenizers)
    unknown = tell_unknown_tokens(task, examples, tokenizers, "training")
    require_known_targets(task, unknown, getattr(task.options, "unknown_targets", 1.0))
    tell_unknown_tokens(task, validation, tokenizers, "validation")
    return _Data(examples, validation, kept, run, answer)


def _members(task, folder, overwrite, devices, data, report, stepped):
    """Return the mean of members, which are trained one after another, a run each; data have the
    examples that it takes."""
    members = []
    for number in range(task.options.members):
        member, path = task.member(number), folder / MEMBERS / f"{number + 1}"
        name = f"member {number + 1} of {task.options.members}"
        if overwrite or not is_finished(path, member.name, member.options, False):
            console.print(name)
            member.modelling.folder = path
            parts = data.examples, data.kept, data.run.tokenizers
            run, answer = member.prepared(path, *parts)
            member_data = dataclasses.replace(data, run=run, answer=answer)
            told = (None, None) if number else (report, stepped)
            plan = _plan(member, path, overwrite, devices, member_data, *told)
            begin = functools.partial(_begin_both, task, folder, overwrite, data.run, plan.begin)
            model = fit(dataclasses.replace(plan, begin=begin))
            _finish(member, path, model, member_data)
            overwrite = False
        scores = files.read_json(path / SCORES)
        console.print(f"  {name}: {member.scoring.summary(scores)}")
        members.append(load_model(path / MODEL, "begin again with --overwrite", compile=False))
    model = task.modelling.mean_of(members)
    data.run = task.fitting(data.run, folder, data.kept, data.answer, model)
    return model


def _begin_both(task, folder, overwrite, run, begin):
    """Begin a run, and then that of a member."""
    _begin(task, folder, overwrite, run)
    begin()


def _begin(task, folder, overwrite, run):
    open_run(folder, task.name, task.options, overwrite)
    run.write_tokenizers(folder)
    task.modelling.begun(folder)


def _plan(task, folder, overwrite, devices, data, report, stepped):
    """Return the `Plan` of a task's training."""
    options, modelling, run = task.options, task.modelling, data.run
    batches, loss = modelling.batches(data.examples, run), modelling.loss()
    validation = Validation(task, data.validation, run, data.answer)
    steps = options.max_steps or -(-modelling.num_steps(batches) // options.gradient_accumulation)
    rows = getattr(batches.order, "batch_size", None) or options.batch_size
    if rows % devices.num_replicas:
        raise RunError(
            f"a batch has {counted(rows, 'examples')}, which the {devices.num_replicas} devices "
            "can not share alike; give more examples, or choose --strategy one."
        )
    batches.few_shapes |= options.xla
    if options.gradient_accumulation > 1:
        batches = batches.in_groups(options.gradient_accumulation, ignored_by(loss))

    def prepare(model):
        served = modelling.trained(model)
        data.run = task.fitting(run, folder, data.kept, data.answer, served)
        if not overwrite and (folder / CHECKPOINT).exists():
            return
        if _takes_weights(options):
            take_weights(
                served,
                lambda run: modelling.trained(modelling.model(run)),
                run,
                options.start_from,
                hasattr(options, "pretrained"),
            )
        validation.require_best(model)

    begin = functools.partial(_begin, task, folder, overwrite, run)
    if devices.num_processes > 1 and devices.is_chief:  # they meet before a model is made
        begin()
        devices.meet()
    return Plan(
        lambda: modelling.model(run),
        loss,
        batches.for_fit,
        steps,
        options,
        folder,
        metrics=modelling.metrics(),
        loss_weights=modelling.loss_weights(),
        validation=validation,
        looks_first=modelling.looks_first,
        report=report,
        stepped=stepped,
        tokens_from=batches.tokens_from,
        prepare=prepare,
        begin=begin if devices.num_processes == 1 else None,
        devices=devices,
    )


def _finish(task, folder, model, data):
    """Score a trained model, write its run, and return the scores."""
    model = task.modelling.trained(model)
    answers = _answers(task, model, data.validation, data.answer)
    if task.calibrating.balanced(model, answers, data.run):
        answers = _answers(task, model, data.validation, data.answer)
    scores = task.modelling.measure(model, data.validation, data.run)
    run, answers = task.scoring.tuned(data.run, answers)
    scores |= task.scoring.scores(answers)
    scores = task.scoring.beside(scores, data.examples, answers, data.run)
    if calibration := task.calibrating.calibrated(model, answers, run):
        run, scores = task.calibrating.behind(calibration, run, scores)
        task.calibrating.draw(calibration, folder / CALIBRATION)
    model, run, none = task.calibrating.answering_none(model, run, data.examples, answers)
    if none:
        answers = _answers(task, model, data.validation, answerer(run))
        scores |= task.scoring.scores(answers) | {"none_of_these": none}
    task.scoring.draw(model, run, folder / task.scoring.picture)
    run.write(folder, model, scores)
    for name in (CHECKPOINT, BEST, TEACHER):
        (folder / name).unlink(missing_ok=True)
    return scores


def _answers(task, model, validation, answer):
    tests = task.scoring.tests(validation)
    return answered(tests, lambda texts, advance: answer(model, texts, advance=advance))


def _takes_weights(options):
    """Return whether the frame reads `start_from`, and not the task, which may read other folders
    too."""
    kind = options_of(type(options))["start_from"].metadata["type"]
    return options.start_from is not None and kind.is_run(options.start_from)


def answered(tests: Iterable[tuple[str, list[Any]]], answer: Callable[..., Any]) -> dict[str, Any]:
    """Return a dictionary: name -> (examples, answers) of a task's tests, with a progress bar.

    Args:
        tests: yields (name, list of examples).
        answer: (texts, advance) -> answers.
    """
    answers_by_name = {}
    with progress_bar() as bar:
        for name, examples in tests:
            part = bar.add_task(f"scoring {name}", total=len(examples))
            answers = answer(
                mapped(examples, operator.attrgetter("text")),
                lambda rows, part=part: bar.advance(part, rows),
            )
            answers_by_name[name] = examples, answers
    return answers_by_name


def _report(task, folder, scores):
    for shown in task.scoring.shown(scores):
        console.print(shown)
    names = (MODEL, SCORES, HISTORY, CURVES, SAMPLES, CALIBRATION, task.scoring.picture)
    made = [name for name in names if (folder / name).exists()]
    console.print(
        f"{one_line(folder)}: {', '.join(made[:-1])} and {made[-1]} are there; "
        f"{task.scoring.summary(scores)}"
    )
    for run in task.runs(folder):
        options = ["--stream"] if task.modelling.streams else []
        command = shlex.join([str(run), f"bundles/{run.name}", *options])
        console.print(f"next: seqkeras export {one_line(command)}")
