"""Which options `tune` searches, and where: spaces stand beside the options."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click

from seqkeras.training.options import FitOptions, Options, options_of, shown
from seqkeras.training.options.spaces import Range, Space

if TYPE_CHECKING:
    import optuna

Values = Range | tuple[Any, ...]


def spaces_of(kind: type[Options]) -> dict[str, Space]:
    """Return a dictionary: name -> space of the options that have one; an option that is declared
    anew without a space keeps it."""
    spaces: dict[str, Space] = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(Options)]):
        for field in dataclasses.fields(base):
            if "part" in field.metadata:
                spaces |= spaces_of(field.metadata["part"])
            elif space := field.metadata.get("search"):
                spaces[field.name] = space
    return {name: spaces[name] for name in options_of(kind) if name in spaces}


def usual_names(kind: type[Options]) -> list[str]:
    """Return the names of the options that are searched where --search names none."""
    return [name for name, space in spaces_of(kind).items() if space.is_usual]


def value_of(options: FitOptions, name: str) -> Any:
    """Return the value that an option with a space has, where it is unset what it stands for."""
    value = getattr(options, name)
    return spaces_of(type(options))[name].unset(options) if value is None else value


def values_to_try(options: FitOptions, name: str) -> Values:
    """Return the values of an option with a space that the other options allow.

    Raises:
        click.UsageError: if they allow no other value than the present one.
    """
    space, value = spaces_of(type(options))[name], value_of(options, name)
    if space.has_weights and options.start_from is not None:
        raise click.UsageError("--start-from has weights of one value alone; leave it out.")
    if space.about is None:
        choices = options_of(type(options))[name].metadata["type"].choices
        values: Values = (*choices,) if value in choices else (value, *choices)
    elif value is None:
        raise click.UsageError(f"{shown(name)} has no value to search about; leave it out.")
    else:
        values = space.about(value)
    ends = values[:2] if isinstance(values, Range) else values
    problems = {end: _problem(options, name, end) for end in ends if end != value}
    if all(problems.values()):
        raise click.UsageError(next(iter(problems.values())))
    if isinstance(values, Range):
        return values
    return tuple(value for value in values if not problems.get(value))


def _problem(options, name, value):
    """Return the first sentence against a value of an option; None where there is none."""
    changed = options.changed(**{name: value})
    return next(iter(changed.all_problems(changed)), None)


def spaces_to_search(
    options: FitOptions, wanted: Collection[str], given: Collection[str]
) -> dict[str, Values]:
    """Return a dictionary: name -> values of the options that are searched: those that are wanted,
    else the usual ones of the task that the command line does not give.

    Raises:
        click.UsageError: if one that is wanted has no space, or is given, or if the other options
            allow no other value.
    """
    known = spaces_of(type(options))
    for name in wanted:
        if name not in known:
            raise click.UsageError(f"--search must be of {', '.join(known)}; received {name!r}.")
        if name in given:
            raise click.UsageError(f"--search {name}: {shown(name)} is given; leave one out.")
    spaces = {}
    for name in wanted or [usual for usual in usual_names(type(options)) if usual not in given]:
        try:
            spaces[name] = values_to_try(options, name)
        except click.UsageError as error:
            if wanted:
                raise click.UsageError(f"--search {name}: {error.message}") from None
    return spaces


def first_values(spaces: Mapping[str, Values], options: FitOptions) -> dict[str, Any]:
    """Return a dictionary: name -> value of the options as they are, where their space has it."""
    values = {name: value_of(options, name) for name in spaces}
    return {name: value for name, value in values.items() if _holds(spaces[name], value)}


def _holds(space, value):
    return space.low <= value <= space.high if isinstance(space, Range) else value in space


def suggested(trial: optuna.Trial, name: str, values: Values) -> Any:
    """Return the value of an option that a trial draws."""
    if not isinstance(values, Range):
        return trial.suggest_categorical(name, values)
    if isinstance(values.low, int) and isinstance(values.high, int):
        return trial.suggest_int(name, values.low, values.high)
    return trial.suggest_float(name, values.low, values.high, log=values.is_log)
