"""`seqkeras train dates`: its options, and what it is made of."""

from collections.abc import Iterable

import click

from seqkeras.data import dates
from seqkeras.training.options import (
    FRACTION,
    OPTIMIZERS,
    FitOptions,
    Number,
    Options,
    at_least,
    option,
)
from seqkeras.training.options.spaces import DROPOUT, OTHER_CHOICE, OTHER_SIZE, SIZE, SMOOTHING
from seqkeras.training.task import Task


class _Locales(click.ParamType):
    """Names of locales with commas between them, as a tuple."""

    name = "locales"

    def convert(self, value, parameter, context):
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names or len(set(names)) < len(names):
            self.fail(f"needs one locale or more, each once; received {value!r}.")
        unknown = [name for name in names if name not in dates.LOCALES]
        if unknown:
            self.fail(f"unknown locale {unknown[0]!r}; known: {', '.join(dates.LOCALES)}.")
        return tuple(names)


class DatesOptions(FitOptions, task="dates"):
    """Translate dates as people write them, in 28 locales, to ISO dates from 1950 to 2049."""

    # As the published figures were taken.
    optimizer: str = option(
        "keras-adam",
        click.Choice(OPTIMIZERS),
        "Optimizer; the published figures were taken with keras-adam.",
    )
    keep: str = option(
        "last",
        click.Choice(["best", "last"]),
        "Model that the run keeps: the best by --best-by, or the last.",
    )
    examples: int = option(200_000, at_least(1), "Training examples to make.")
    locales: tuple = option(
        dates.LOCALES, _Locales(), "Locales of the dates, separated by commas. Default: all 28."
    )
    in_text: float = option(
        0.45, FRACTION, "Share of examples whose date stands in a sentence, or that hold no date."
    )
    noisy: float = option(
        0.5,
        FRACTION,
        "Share of human noise, such as typing errors, among examples that are a date alone.",
    )
    test_examples: int = option(100, at_least(1), "Test texts of each kind in each locale.")
    cell: str = option(
        "lstm", click.Choice(["gru", "lstm"]), "Recurrent cell of both sides.", search=OTHER_CHOICE
    )
    embedding_dim: int = option(
        48, at_least(1), "Size of the character embeddings.", search=OTHER_SIZE
    )
    units: int = option(
        64, at_least(1), "Size of the encoder's state in each direction.", search=SIZE
    )
    decoder_units: int = option(64, at_least(1), "Size of the decoder's state.")
    dropout: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Dropout rate of embeddings and before the logits.",
        search=DROPOUT,
    )
    label_smoothing: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Share of the target probability that is spread evenly over all characters.",
        search=SMOOTHING,
    )

    USUAL = ("examples", "locales", "cell", "units", "dropout")

    def make(self) -> Task:
        from seqkeras.training.parts import dates as parts

        return Task.of(self, parts.DateReading, parts.DateModelling, parts.DateScoring)

    def problems(self, command: Options) -> Iterable[str]:
        if self.examples < self.batch_size:
            yield (
                f"--examples must be at least --batch-size, {self.batch_size}; "
                f"received {self.examples}."
            )
