"""The command line of `seqkeras train tune`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click
from click.core import ParameterSource

from seqkeras.training.commands import command
from seqkeras.training.options import FitOptions, Names, at_least, options_of
from seqkeras.training.tuning.spaces import names_to_search

TUNE = "tune"
STORAGES = ("sqlite", "journal")


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Options of `seqkeras train tune`.

    Args:
        options: `FitOptions` of the task, as they are without a trial.
        folder: where the study and the best run lie.
        overwrite: whether to remove what is there.
        trials: how many trials the study has in the end.
        names: names of the options that are searched.
        storage: one of `STORAGES`.
    """

    options: FitOptions
    folder: Path
    overwrite: bool
    trials: int
    names: list[str]
    storage: str


def tune_command(tasks: dict[str, type[FitOptions]]) -> click.Group:
    """Return the click group with a command for each task, which returns a `Tuning`."""
    return click.Group(
        TUNE,
        commands={name: _command(name, options) for name, options in tasks.items()},
        help="Search the options of a task that its validation examples find best.\n\nOptions that "
        "are given stay as they are. The first trial is the task as it is without a search; trials "
        "that fall behind at a look are ended early. The same command goes on where it was "
        "stopped. Its folder holds the best run as BEST, an ordinary run, and the table and the "
        "picture of all trials.",
        short_help="Search the options of a task.",
    )


def _command(name, options_class):
    made = command(name, options_class)
    made.params += [
        click.Option(
            ["--trials"],
            type=at_least(1),
            default=20,
            show_default=True,
            help="Trials of the whole study, earlier commands included.",
        ),
        click.Option(
            ["--search"],
            type=Names(),
            default=None,
            help="Options to search, such as learning_rate,dropout. Default: the learning rate, "
            "dropout, batch size, layers and size of the task, as far as they are not given.",
        ),
        click.Option(
            ["--storage"],
            type=click.Choice(STORAGES),
            default=STORAGES[0],
            show_default=True,
            help="Form of the study: a database for one machine, or a journal for several machines "
            "that share the folder.",
        ),
    ]
    made.usual = [*made.usual, "trials", "search", "storage"]
    of_task = made.callback

    def callback(trials, search, storage, **values):
        context = click.get_current_context()
        options, folder, overwrite = of_task(**values)
        given = {
            option
            for option in options_of(options_class)
            if context.get_parameter_source(option) != ParameterSource.DEFAULT
        }
        names = names_to_search(options, search or (), given)
        if not names:
            raise click.UsageError("no option is left to search; name some with --search.")
        return Tuning(options, folder, overwrite, trials, names, storage)

    made.callback = callback
    return made
