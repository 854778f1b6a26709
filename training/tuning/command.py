"""The command line of `seqkeras train tune`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
from click.core import ParameterSource

from seqkeras.runs import RunError
from seqkeras.training.commands import command
from seqkeras.training.options import FitOptions, Names, at_least, options_of
from seqkeras.training.tuning.spaces import Values, spaces_to_search, usual_names

TUNE = "tune"
STUDY = {"sqlite": "study.db", "journal": "study.log"}
STORAGES = (*STUDY,)


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Options of `seqkeras train tune`.

    Args:
        options: `FitOptions` of the task, as they are without a trial.
        folder: where the study and the best run lie.
        overwrite: whether to remove what is there.
        trials: how many trials the study has in the end.
        spaces: name -> values of the options that are searched.
        is_named: whether --search names them.
        given: names of the options that the command line or --config gives.
        storage: one of `STORAGES`.
    """

    options: FitOptions
    folder: Path
    overwrite: bool
    trials: int
    spaces: dict[str, Values]
    is_named: bool
    given: frozenset[str]
    storage: str


def tune_command(tasks: dict[str, type[FitOptions]]) -> click.Group:
    """Return the click group with a command for each task, which returns a `Tuning`."""
    return click.Group(
        TUNE,
        commands={name: _command(name, options) for name, options in tasks.items()},
        help="Train a task several times with different options, and keep the run with the best "
        "validation score.\n\nIt takes the options of the task, as seqkeras train TASK does; those "
        "that are given stay as they are. The first trial has the options of a training without a "
        "search. A trial that falls behind at a look ends early. The same command goes on where it "
        "was stopped.\n\nThe folder of --out holds the best run (best), a table of all trials "
        "(tuning.json) and its picture (tuning.png).",
        short_help="Search the best options of a task.",
    )


def _command(name, options_class):
    made = command(name, options_class)
    made.params += [
        click.Option(
            ["--trials"],
            type=at_least(1),
            default=20,
            show_default=True,
            help="Trainings of the whole study, with the trainings of earlier commands.",
        ),
        click.Option(
            ["--search"],
            type=Names(),
            default=None,
            help=f"Names of the options to search, with commas between them. Default of {name}: "
            f"{', '.join(usual_names(options_class))}, without those that are given.",
        ),
        click.Option(
            ["--storage"],
            type=click.Choice(STORAGES),
            default=STORAGES[0],
            show_default=True,
            help="File of the study: a database for one machine (sqlite), or a journal for several "
            "machines that share the folder.",
        ),
    ]
    made.usual = [*made.usual, "trials", "search", "storage"]
    of_task = made.callback

    def callback(trials, search, storage, **values):
        context = click.get_current_context()
        options, folder, overwrite = of_task(**values)
        given = frozenset(
            option
            for option in options_of(options_class)
            if context.get_parameter_source(option) != ParameterSource.DEFAULT
        )
        spaces = spaces_to_search(options, search or (), given)
        if not spaces:
            raise click.UsageError("no option is left to search; name some with --search.")
        _require_study(folder)
        return Tuning(options, folder, overwrite, trials, spaces, bool(search), given, storage)

    made.callback = callback
    return made


def _require_study(folder):
    """Raise a `RunError` unless a folder is empty, or holds a study: others are not removed."""
    files_there = [path.name for path in folder.glob("[!.]*")]
    if files_there and not {*STUDY.values()} & {*files_there}:
        raise RunError(f"{folder}: holds no study of tune; choose another --out.")
