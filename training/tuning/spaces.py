"""Where `tune` looks for the value of an option, by the option's name and its default."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import click

from seqkeras.training.options import FitOptions, options_of, shown

if TYPE_CHECKING:
    import optuna

RATE = 10.0  # how far a learning rate is from its default, up and down
DROPOUT = (0.0, 0.5)
DECAY = (1e-4, 0.1)
SMOOTHING = (0.0, 0.2)
MOST_LAYERS = 2  # more than the default
SIZES = (  # which are halved and doubled
    "units",
    "embedding_dim",
    "hidden_dim",
    "feed_forward_dim",
    "batch_size",
    "context",
    "vocab_size",
)
OTHERS = {
    "dropout": DROPOUT,
    "attention_dropout": DROPOUT,
    "weight_dropout": DROPOUT,
    "label_smoothing": SMOOTHING,
}
LAYERS = ("num_layers", "layers")
USUAL = (
    "learning_rate",
    "dropout",
    "batch_size",
    *LAYERS,
    "units",
    "hidden_dim",
    "model",
    "encoder",
)


def searchable(options_class: type[FitOptions]) -> list[str]:
    """Return the names of options that have a space: numbers with a default, choices, and
    switches of a task."""
    fields = options_of(options_class)
    return [name for name in fields if choices_of(fields[name]) or _has_range(fields[name])]


def choices_of(field: Any) -> tuple[Any, ...]:
    """Return the values of an option that is one of a few; none of other options."""
    kind = field.metadata["type"]
    if field.name in ("model", "encoder", "cell", "pooling", "activation", "position_kind"):
        return tuple(kind.choices) if isinstance(kind, click.Choice) else ()
    return ()


def _has_range(field):
    if field.name in ("learning_rate", "weight_decay", *LAYERS, *OTHERS):
        return field.default is not None or field.name == "weight_decay"
    return field.name in SIZES and field.default is not None


def suggested(trial: optuna.Trial, name: str, options: FitOptions) -> Any:
    """Return the value of an option that a trial draws, about the value that it has.

    Args:
        trial: an `optuna.Trial`.
        name: one of `searchable`.
        options: the options as they are without the trial.
    """
    field, value = options_of(type(options))[name], getattr(options, name)
    if choices := choices_of(field):
        return trial.suggest_categorical(name, choices)
    if name == "learning_rate":
        return trial.suggest_float(name, value / RATE, value * RATE, log=True)
    if name == "weight_decay":
        return trial.suggest_float(name, *DECAY, log=True)
    if name in LAYERS:
        return trial.suggest_int(name, 1, value + MOST_LAYERS)
    if name in OTHERS:
        return trial.suggest_float(name, *OTHERS[name])
    return trial.suggest_categorical(name, sizes_of(value))


def sizes_of(value: int) -> tuple[int, ...]:
    """Return a size, its half and its double."""
    return tuple(dict.fromkeys((max(1, value // 2), value, 2 * value)))


def first_values(names: Iterable[str], options: FitOptions) -> dict[str, Any]:
    """Return a dictionary: name -> value of the options as they are, where their space has it."""
    fields = options_of(type(options))
    values = {name: getattr(options, name) for name in names}
    return {
        name: value
        for name, value in values.items()
        if value is not None or None in choices_of(fields[name])
    }


def names_to_search(
    options: FitOptions, wanted: Collection[str], given: Collection[str]
) -> list[str]:
    """Return the names of the options that are searched: those that are wanted, else the usual ones
    of the task that the command line does not give.

    Raises:
        click.UsageError: if one that is wanted has no space, or is given.
    """
    known = searchable(type(options))
    for name in wanted:
        if name not in known:
            listed = ", ".join(known)
            raise click.UsageError(f"--search must be of {listed}; received {name!r}.")
        if name in given:
            raise click.UsageError(f"--search {name}: {shown(name)} is given; leave one out.")
    if wanted:
        return [*wanted]
    return [name for name in known if name in USUAL and name not in given]
