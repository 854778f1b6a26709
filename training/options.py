"""A dataclass is the command line: `--batch-size 64` sets its field `batch_size`.

The same names, in a JSON object, make a `--config` file; the command line goes before the file.
"""

import dataclasses
import json
import math
from pathlib import Path

import click


def option(default, type, help):
    """A dataclass field that is also an option of the command line."""
    return dataclasses.field(default=default, metadata={"type": type, "help": help})


def at_least(minimum):
    return click.IntRange(min=minimum)


class _Positive(click.FloatRange):
    """A finite number over zero: FloatRange alone lets NaN pass."""

    def __init__(self):
        super().__init__(min=0, min_open=True, max=float("inf"), max_open=True)

    def convert(self, value, parameter, context):
        number = super().convert(value, parameter, context)
        if math.isnan(number):
            self.fail("nan is not a number over 0.", parameter, context)
        return number


POSITIVE = _Positive()
FRACTION = click.FloatRange(min=0, max=1)


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """What every training takes; a task's options come after these."""

    seed: int = option(0, click.IntRange(0, 2**32 - 1), "Of weights, samples and their order.")
    batch_size: int = option(128, at_least(1), "Examples in each step.")
    learning_rate: float = option(3e-3, POSITIVE, "Adam's, at the end of the warm-up.")
    warmup_steps: int = option(100, at_least(0), "Steps until the full learning rate.")
    clip_norm: float = option(1.0, POSITIVE, "Largest norm of all gradients together.")
    passes: int = option(3, at_least(1), "How often the model sees each training example.")
    steps_per_save: int = option(100, at_least(1), "Steps between two checkpoints.")


def command(name, options_class, run):
    """A click command that builds the options and calls `run(options, folder, overwrite)`."""
    parameters = [
        click.Option(
            ["--out"],
            type=click.Path(file_okay=False, path_type=Path),
            required=True,
            help="Run folder to make, or to go on with.",
        ),
        click.Option(["--overwrite"], is_flag=True, help="Replace the run that is in the folder."),
        click.Option(
            ["--config"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            callback=_read_config,
            is_eager=True,
            expose_value=False,
            help="JSON object of the options below.",
        ),
        *[
            click.Option(
                ["--" + field.name.replace("_", "-")],
                type=field.metadata["type"],
                default=field.default,
                show_default=not isinstance(field.default, tuple),
                help=field.metadata["help"],
            )
            for field in dataclasses.fields(options_class)
        ],
    ]

    def callback(out, overwrite, **values):
        run(options_class(**values), out, overwrite)

    return click.Command(
        name,
        params=parameters,
        callback=callback,
        help=run.__doc__,
        short_help=run.__doc__,
    )


def _read_config(context, parameter, path):
    if path is None:
        return
    known = [
        each.name
        for each in context.command.params
        if each.name not in ("config", "out", "overwrite")
    ]
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.BadParameter(f"{path} is not a JSON file: {error}", param=parameter) from None
    if not isinstance(values, dict):
        raise click.BadParameter(f"{path} must hold a JSON object of options.", param=parameter)
    if values.pop("task", context.command.name) != context.command.name:
        raise click.BadParameter(f"{path} holds the options of another task.", param=parameter)
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise click.BadParameter(
            f"{path} has unknown options: {', '.join(unknown)}; known: {', '.join(known)}.",
            param=parameter,
        )
    wrong = [
        name for name, value in values.items() if not isinstance(value, str | int | float | list)
    ]
    if wrong:
        raise click.BadParameter(
            f"{path}: {wrong[0]} must be a text, a number or a list; received "
            f"{json.dumps(values[wrong[0]])}.",
            param=parameter,
        )
    context.default_map = values
