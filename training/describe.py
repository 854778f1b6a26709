"""Sizes of a run's model, or of a published one: `seqkeras train describe`."""

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

import click

from seqkeras.runs import MODEL, RunError
from seqkeras.terminal import one_line

DESCRIBE = "describe"
LENGTH = 128  # of the text, by default


@dataclasses.dataclass(frozen=True)
class Description:
    """Options of `seqkeras train describe`.

    Args:
        subject: folder of a run, or a name of `seqkeras.analysis.model_sizes.MODELS`.
        length: tokens of the text, or steps of the window, whose operations are counted; None for
            `LENGTH`, or the most that the model reads if that is less.
    """

    subject: str
    length: int | None = None


def describe_command() -> click.Command:
    """Return the click command, which returns a `Description`."""

    @click.command(DESCRIBE, short_help="Count the parameters and operations of a model.")
    @click.argument("subject")
    @click.option(
        "--length",
        type=click.IntRange(1),
        help="Tokens of the text, or steps of the window, whose operations are counted. "
        f"Default: {LENGTH}, or the most that the model reads if that is less.",
    )
    def describe_model(subject, length):
        """Count the parameters and operations of a model.

        SUBJECT is the folder of a run, or a published model: bert-base, bert-large, gpt, gpt2,
        gpt2-medium, gpt2-large, gpt2-xl, transformer-base or transformer-big. The table shows the
        parameters of each part, and their bytes in float32 and in int8. No weight is read, or gets
        a value.

        \b
            seqkeras train describe runs/reviews
            seqkeras train describe bert-large --length 512
        """
        return Description(subject, length)

    return describe_model


def describe(description: Description) -> None:
    """Print the table of a model.

    Raises:
        RunError: if there is no such run and no such model, or the model reads no such text.
    """
    from seqkeras.analysis.model_sizes import MODELS, operations_of, parts_of, published
    from seqkeras.models.limits import most_tokens
    from seqkeras.training.console import console

    subject = description.subject
    model = published(subject) if subject in MODELS else _of_run(Path(subject), MODELS)
    most = most_tokens(model)
    length = description.length or min(LENGTH, most or LENGTH)
    if most is not None and length > most:
        raise RunError(f"--length must be at most {most}, as {subject} reads; received {length}.")
    console.print(_table(f"{subject}: {type(model).__name__}", parts_of(model)))
    try:
        operations, steps = operations_of(model, length)
    except ValueError as error:
        console.print(f"operations are not counted: {one_line(error)}")
        return
    console.print(
        f"{operations.multiply_adds / steps:,.0f} multiply-adds for each of {steps:,} steps; "
        f"{operations.sequential:,} products wait for each other"
    )


def _table(title, parts):
    from rich.table import Table

    table = Table(title=one_line(title))
    table.add_column("part")
    for heading in ("parameters", "share", "bytes in float32", "bytes in int8"):
        table.add_column(heading, justify="right")
    rows = [dataclasses.astuple(part) for part in parts]
    totals = [sum(column) for column in list(zip(*rows))[1:]]
    for name, parameters, *sizes in (*rows, ("in all", *totals)):
        share = f"{parameters / totals[0]:.1%}"
        table.add_row(name, f"{parameters:,}", share, *(f"{size:,}" for size in sizes))
    return table


def _of_run(folder: Path, known: Any) -> Any:
    """Return the model of a run, whose weights have no values."""
    import keras

    from seqkeras.analysis.operations import weightless

    path = folder / MODEL
    if not path.is_file():
        raise RunError(
            f"{folder}: no run, {MODEL} is missing, and no published model; choose a run, or one "
            f"of {', '.join(known)}."
        )
    try:
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read("config.json"))
        config.pop("compile_config", None)
        with weightless():
            return keras.saving.deserialize_keras_object(config)
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise RunError(f"{path}: can not be read ({one_line(error)}); train again.") from error
