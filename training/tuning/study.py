"""A study of trials, each a training; the best stays as a run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import shlex
import shutil
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import keras
import optuna
from rich.box import SIMPLE_HEAD
from rich.table import Table

from seqkeras import files
from seqkeras.locking import locked
from seqkeras.runs import SCORES, RunError
from seqkeras.terminal import one_line
from seqkeras.training.console import console
from seqkeras.training.options import options_of, shown
from seqkeras.training.options.sizes import told_size
from seqkeras.training.run import options_content
from seqkeras.training.train import train
from seqkeras.training.tuning.command import STUDY
from seqkeras.training.tuning.picture import draw_trials
from seqkeras.training.tuning.spaces import first_values, suggested, values_to_try
from seqkeras.training.validation import Compared
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.training.tuning.command import Tuning

BEST, TRIALS = "best", "trials"
TABLE, PICTURE = "tuning.json", "tuning.png"
NAME, OPTIONS = "seqkeras", "options"  # of a study; the attribute with what is not searched
SEARCH = "search"  # the names of what is searched, in that attribute
SCORE = "score"  # the attribute with what trials are compared by
SHOWN = 5  # trials in the table
FIRST_TRIALS = 4  # that are never ended early
UNTIL_ESTIMATE = 5  # seconds of a first trial's steps, by which the others are estimated
FEWEST = 10  # different trials of which the importance of options is told: of fewer it is chance


class _Ended(Exception):
    """A trial that a look ends."""


def tune(tuning: Tuning) -> None:
    """Search the options of a task, or go on with a study that was stopped.

    Raises:
        RunError: if the folder holds a study of other options, or the task can not be trained.
        InUseError: if another process writes the study.
    """
    folder = tuning.folder
    if tuning.overwrite:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    if tuning.storage == "journal":
        _search(tuning)
        return
    with locked(folder / STUDY[tuning.storage]):
        _search(tuning)


def _search(tuning):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, tuning = _begun(tuning)
    console.print(f"tune {tuning.options.task}: {', '.join(tuning.spaces)}")
    if size := told_size(tuning.options):
        console.print(f"  {size}")
    done = _finished(study)
    if done:
        console.print(f"  going on: {counted(len(done), 'trials are', 'trial is')} done")
    while len(_finished(study)) < tuning.trials:
        _run_trial(study, tuning)
    _report(study, tuning)


def _begun(tuning):
    """Return the study of the folder, new or old, and the tuning with the study's spaces."""
    path = tuning.folder / STUDY[tuning.storage]
    if tuning.storage == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(path))
        storage: Any = optuna.storages.JournalStorage(backend)
    else:
        storage = f"sqlite:///{path}"
    study = optuna.create_study(
        storage=storage,
        study_name=NAME,
        load_if_exists=True,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=FIRST_TRIALS),
    )
    if OPTIONS in study.user_attrs:
        tuning = dataclasses.replace(tuning, spaces=_spaces_of(study, tuning))
    else:
        study.set_user_attr(OPTIONS, _fixed(tuning, tuning.spaces))
        study.enqueue_trial(first_values(tuning.spaces, tuning.options))
    if tuning.storage != "journal":  # of which another machine may run one
        for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            study.enqueue_trial(trial.params)
            shutil.rmtree(_folder_of(tuning, trial), ignore_errors=True)
    # Draws that go on are others than those before.
    study.sampler = optuna.samplers.TPESampler(
        seed=tuning.options.seed + len(study.trials), n_startup_trials=FIRST_TRIALS
    )
    return study, tuning


def _fixed(tuning, names):
    """Return what a study's trials have in common, as JSON has it."""
    values = options_content(tuning.options.task, tuning.options)
    values = {name: value for name, value in values.items() if name not in names}
    return json.loads(json.dumps(values | {SEARCH: [*names]}))


def _spaces_of(study, tuning):
    """Return name -> values of the options that a study searches, as its trials have them.

    Raises:
        RunError: if the study is of other options.
    """
    begun, choose = study.user_attrs[OPTIONS], "choose another --out, or --overwrite"
    names, fields = begun[SEARCH], options_of(type(tuning.options))
    if tuning.is_named and {*names} != {*tuning.spaces}:
        raise RunError(
            f"{tuning.folder}: holds a study that searches {', '.join(names)}; leave --search out "
            f"to go on with it, {choose}."
        )
    for name in names:
        if name in tuning.given:
            raise RunError(
                f"{tuning.folder}: holds a study that searches {name}; leave {shown(name)} out, "
                f"{choose}."
            )
    # An option that is younger than the study had its default there.
    begun = {name: field.default for name, field in fields.items()} | begun
    for name, value in _fixed(tuning, names).items():
        if value != json.loads(json.dumps(begun.get(name))):
            what = "files of another content" if name == "sha256" else f"another {name}"
            raise RunError(f"{tuning.folder}: holds a study with {what}; {choose}.")
    drawn = {
        name: distribution.choices
        for trial in study.trials
        for name, distribution in trial.distributions.items()
        if isinstance(distribution, optuna.distributions.CategoricalDistribution)
    }
    return {name: drawn.get(name) or values_to_try(tuning.options, name) for name in names}


def _finished(study):
    """Return the trials that were trained to their end, or ended early, or can not be trained."""
    states = optuna.trial.TrialState
    return study.get_trials(states=(states.COMPLETE, states.PRUNED))


def _folder_of(tuning, trial):
    return tuning.folder / TRIALS / f"{trial.number:04d}"


def _run_trial(study, tuning):
    """Train one trial, and keep its run if it is the best."""
    trial, state = study.ask(), optuna.trial.TrialState
    values = {name: suggested(trial, name, space) for name, space in tuning.spaces.items()}
    folder = _folder_of(tuning, trial)
    ranks: list[float] = []

    def report(look: int, rank: list[float], by: Compared) -> None:
        if not ranks:
            study.set_user_attr(SCORE, [*by])
        ranks.append(rank[0])
        if math.isfinite(rank[0]):
            trial.report(rank[0], look)
        if trial.should_prune():
            raise _Ended

    options = tuning.options.changed(**values)
    words = ", ".join(f"{name} {_number(value)}" for name, value in values.items())
    left = _left_in_words(study, tuning)
    console.print(f"  trial {trial.number + 1} of {tuning.trials}{left}: {words}")
    try:
        options.check()
        keras.backend.clear_session()
        stepped = None if left else _Estimate(tuning)
        with _quiet():
            train(options.make(), folder, overwrite=True, report=report, stepped=stepped)
    except _Ended:
        study.tell(trial, state=state.PRUNED)
        ended = _scored(study, ranks[-1])
        console.print(f"    ended early at {ended}{_best_in_words(study)}")
    except (click.UsageError, RunError) as error:
        if not _finished(study):  # the task as it is
            study.tell(trial, state=state.FAIL)
            raise
        study.tell(trial, state=state.PRUNED)
        reason = error.format_message() if isinstance(error, click.UsageError) else str(error)
        console.print(f"    can not be trained: {one_line(reason):.200}")
    except BaseException:
        study.tell(trial, state=state.FAIL)
        study.enqueue_trial(trial.params)
        raise
    else:
        best = max(ranks) if tuning.options.keep == "best" else ranks[-1]
        study.tell(trial, best)
        _keep_if_best(study, trial, tuning, folder)
        console.print(f"    {_scored(study, best)}{_best_in_words(study)}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_if_best(study, trial, tuning, folder):
    best = tuning.folder / BEST
    with locked(best):
        if study.best_trial.number == trial.number:
            shutil.rmtree(best, ignore_errors=True)
            folder.rename(best)


def _best_in_words(study):
    try:
        best = _number(_told(study, study.best_value))
        return f" (best {best}, trial {study.best_trial.number + 1})"
    except ValueError:  # no trial is complete yet
        return ""


def _left_in_words(study, tuning):
    """Return how long the trials that are left will last, by those that are done; "" before."""
    done = _finished(study)
    seconds = [trial.duration.total_seconds() for trial in done if trial.duration]
    if not seconds:
        return ""
    return f", {_in_words(sum(seconds) / len(seconds) * (tuning.trials - len(done)))} left"


def _in_words(seconds):
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} minutes"


class _Estimate:
    """Tells once, some seconds after the first step of the first trial, how long the trials last,
    as if all were like this one."""

    def __init__(self, tuning: Tuning) -> None:
        self.trials = tuning.trials * getattr(tuning.options, "members", 1)
        self.first, self.is_told = None, False

    def __call__(self, step: int, num_steps: int) -> None:
        now = time.monotonic()
        if self.first is None:  # it has the time in which the step is traced
            self.first = step, now
        spent = now - self.first[1]
        if not self.is_told and spent >= UNTIL_ESTIMATE:
            self.is_told = True
            left = spent / (step - self.first[0]) * (self.trials * num_steps - step)
            # Past the console, which is quiet now.
            print(f"    {_in_words(left)} left, if all trials last as long", file=console.file)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what a training prints from the console."""
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _compared(study):
    """Return what trials are compared by; of a study from before it was noted, "score"."""
    return Compared(*study.user_attrs.get(SCORE, (SCORE, False)))


def _told(study, score):
    """Return a score as people know it: of a lower one the study has the negative."""
    return -score if _compared(study).lower else score


def _scored(study, score):
    return f"{_compared(study).name} {_number(_told(study, score))}"


def _number(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def importance_of(study: optuna.Study, seed: int) -> dict[str, float]:
    """Return name of an option -> its share in the variance of the scores (fANOVA); nothing where
    scores do not vary, but for rounding, and of fewer than `FEWEST` different trials."""
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    if _different(complete) < FEWEST or len({trial.value for trial in complete}) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    try:
        return optuna.importance.get_param_importances(study, evaluator=evaluator)
    except RuntimeError:  # the variance of all trees is 0
        return {}


def _different(trials):
    """Return how many trials have other options than those before them."""
    return len({tuple(sorted(trial.params.items(), key=str)) for trial in trials})


def _table(study, trials, names):
    """Return a row for each trial; six options fit into 80 columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("trial", _compared(study).name, *names):
        header = name.replace("_", "\n").replace(" ", "\n")
        table.add_column(header, justify="right", no_wrap=True)
    for trial in trials:
        values = (trial.params.get(name, "") for name in names)
        cells = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in values)
        table.add_row(str(trial.number + 1), _number(_told(study, trial.value)), *cells)
    return table


def _report(study, tuning):
    """Write the table and the picture of a study, and print its best trials."""
    trials, whole = study.trials, optuna.trial.TrialState.COMPLETE
    scores = [trial.value if trial.state == whole else None for trial in trials]
    complete = [trial for trial in trials if trial.state == whole]
    first = complete[0].value
    complete.sort(key=lambda trial: -trial.value)
    importance = importance_of(study, tuning.options.seed)
    table = {
        "task": tuning.options.task,
        "compared_by": _compared(study).name,
        "best": {"trial": study.best_trial.number + 1, "score": study.best_value}
        | study.best_trial.params,
        "first": first,
        "importance": importance,
        "trials": [
            {
                "trial": trial.number + 1,
                "state": trial.state.name.lower(),
                "score": score,
                "looks": [score for _, score in sorted(trial.intermediate_values.items())],
                **trial.params,
            }
            for trial, score in zip(trials, scores)
        ],
    }
    with files.written_aside(tuning.folder / TABLE) as aside:
        aside.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
    draw_trials(table["trials"], importance, tuning.folder / PICTURE)
    shutil.rmtree(tuning.folder / TRIALS, ignore_errors=True)
    console.print(_table(study, complete[:SHOWN], tuning.spaces))
    if importance:
        parts = ", ".join(f"{name} {share:.0%}" for name, share in importance.items())
        console.print(f"  share of the options in the score's variance: {parts}")
    elif (different := _different(complete)) < FEWEST:
        console.print(
            f"  the share of each option is told from {FEWEST} different trials on; "
            f"{counted(different, 'are', 'is')} done"
        )
    best = tuning.folder / BEST
    console.print(
        f"{one_line(best)}: the run of trial {study.best_trial.number + 1} of "
        f"{len(trials)}, {_scored(study, study.best_value)} beside {_number(_told(study, first))} "
        f"of the options as they are; {SCORES} has all of its scores, {TABLE} and {PICTURE} have "
        "all trials"
    )
    console.print(f"next: seqkeras export {one_line(shlex.join([str(best), 'bundles/tuned']))}")
