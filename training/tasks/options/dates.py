"""Options of `python -m training dates`."""

import dataclasses

import click

from seqkeras.data import dates
from training.options import FRACTION, OPTIMIZERS, FitOptions, Number, at_least, option


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


@dataclasses.dataclass(frozen=True)
class DatesOptions(FitOptions):
    """Dates people write, in 28 locales, to ISO dates of 1950 to 2049; others are none."""

    # As the published figures were taken.
    optimizer: str = option("keras-adam", click.Choice(OPTIMIZERS), "See docs/training.md.")
    keep: str = option("last", click.Choice(["best", "last"]), "Which model the run ends with.")
    examples: int = option(200_000, at_least(1), "Training examples to make.")
    locales: tuple = option(
        dates.LOCALES, _Locales(), "Which, with commas between them; all 28 by default."
    )
    in_text: float = option(
        0.45, FRACTION, "Share of them that stand in text, or are text without a date."
    )
    noisy: float = option(0.5, FRACTION, "Share of the others that carry human noise.")
    test_examples: int = option(100, at_least(1), "Test texts per locale, of each kind.")
    cell: str = option("lstm", click.Choice(["gru", "lstm"]), "Recurrent cell of both sides.")
    embedding_dim: int = option(48, at_least(1), "Size of the character embeddings.")
    units: int = option(64, at_least(1), "Encoder state in each direction.")
    decoder_units: int = option(64, at_least(1), "Decoder state.")
    dropout: float = option(
        0.0, Number(0, 1, max_open=True), "Of embeddings and before the logits."
    )
    label_smoothing: float = option(
        0.0, Number(0, 1, max_open=True), "Share of probability that all characters get."
    )

    def check(self):
        if self.examples < self.batch_size:
            raise click.UsageError(
                f"--examples must be at least --batch-size, {self.batch_size}; "
                f"received {self.examples}."
            )
