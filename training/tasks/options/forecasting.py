"""Options of `python -m training forecasting`."""

import dataclasses

import click

from seqkeras.data.series import GAPS
from seqkeras.data.time_steps import STEPS, named_step
from serving.times import CYCLES
from training.options import (
    POSITIVE,
    DataFile,
    FitOptions,
    Names,
    Number,
    argument,
    at_least,
    option,
)
from training.tasks.options.decimals import decimal_comma, decimal_point, require_numbers


class Quantiles(click.ParamType):
    """Numbers between 0 and 1 that increase, with commas between them, as a tuple."""

    name = "quantiles"

    def convert(self, value, parameter, context):
        try:
            numbers = (
                [float(each) for each in value.split(",")] if isinstance(value, str) else value
            )
            bounds = [0.0, *numbers, 1.0]
            increase = all(low < high for low, high in zip(bounds, bounds[1:]))
        except (TypeError, ValueError):
            increase = False
        if not increase:
            self.fail(f"needs numbers that increase between 0 and 1; received {value!r}.")
        return tuple(numbers)


class Step(click.ParamType):
    """A step in words, with its number before it."""

    name = "step"

    def convert(self, value, parameter, context):
        if not isinstance(value, str) or named_step(value) is None:
            self.fail(
                f"must be {', '.join(STEPS)}, or several as '15 minutes'; received {value!r}."
            )
        return value


@dataclasses.dataclass(frozen=True)
class ForecastingOptions(FitOptions):
    """The values that follow a series, from a file with a row for each step.

    Your file looks like this (.csv; .tsv; .jsonl with an object a line). A field without a value is
    empty, or NA:

    \b
        time,load,temperature,tariff
        2024-01-01 00:00,41.5,3.1,night
        2024-01-01 01:00,,3.0,night

    \b
        python -m training forecasting load.csv --out runs/load --time time --targets load \\
            --numbers temperature --categories tariff --cycles day,week --context 168 --horizon 24

    The last rows of the file are held out. The scores stand beside those of the last value
    (persistence), the value one --period before (seasonal naive), and ridge regression.
    """

    file: str = argument(DataFile(), "Of training: .csv, .tsv or .jsonl.")
    targets: tuple = option((), Names(), "Columns to forecast, with commas between them.")
    numbers: tuple = option((), Names(), "Columns of other numbers.")
    categories: tuple = option((), Names(), "Columns of categories.")
    known: tuple = option((), Names(), "Those of both whose values to come are known, as plans.")
    log: tuple = option(
        (), Names(), "Targets and numbers, none under 0, that the model reads as log(1 + x)."
    )
    decimal_point: tuple = decimal_point()
    decimal_comma: tuple = decimal_comma()
    time: tuple = option((), Names(), "Column of the time; or those of year, month, day, hour, ….")
    time_format: str | None = option(
        None,
        str,
        "As of strptime, %d.%m.%Y; or s, ms, us or ns since 1970; by default ISO 8601, or these.",
    )
    step: str | None = option(
        None, Step(), "Between two rows: month, business-day, 15 minutes, …; told by the times."
    )
    cycles: tuple = option((), Names(CYCLES), f"Of the time, for the model: {', '.join(CYCLES)}.")
    gaps: str = option("refuse", click.Choice(GAPS), "What steps are in which rows are missing.")
    series_column: str | None = option(None, str, "Column that tells several series apart.")
    context: int = option(96, at_least(2), "Steps of the past that are read.")
    horizon: int = option(24, at_least(1), "Steps that are forecast.")
    held_out: float = option(0.1, Number(0, 1, min_open=True, max_open=True), "Share, the last.")
    period: int = option(1, at_least(1), "Steps of a season, as 24 hours; 1 for none.")
    model: str = option(
        "gru", click.Choice(["gru", "lstm", "qrnn", "transformer"]), "What reads the past."
    )
    decoder: str = option(
        "direct", click.Choice(["direct", "recurrent"]), "All steps at once, or one by one."
    )
    quantiles: tuple = option((), Quantiles(), "To forecast, 0.1,0.5,0.9; else one value.")
    loss: str = option("mae", click.Choice(["mae", "mse"]), "Of one value.")
    from_last: bool = option(True, bool, "Forecast the difference from the last value.")
    units: int = option(64, at_least(1), "Size of each layer.")
    num_layers: int = option(1, at_least(1), "Layers.")
    num_heads: int = option(4, at_least(1), "Heads of the Transformer's attention.")
    dropout: float = option(0.1, Number(0, 1, max_open=True), "Of each layer's inputs.")
    batch_size: int = option(32, at_least(1), "Windows in each step.")
    learning_rate: float = option(2e-3, POSITIVE, "At the end of the warm-up.")
    passes: int = option(10, at_least(1), "How often the model sees each window.")

    def check(self):
        if not self.targets:
            raise click.UsageError("--targets is missing: the columns to forecast.")
        series = () if self.series_column is None else (self.series_column,)
        own = (*self.targets, *self.numbers, *self.categories, *self.time, *series)
        if len(set(own)) < len(own):
            raise click.UsageError(
                "--targets, --numbers, --categories, --time and --series-column must name "
                "different columns."
            )
        if stray := [name for name in self.known if name not in (*self.numbers, *self.categories)]:
            raise click.UsageError(
                f"--known must be of --numbers and --categories; received {stray[0]!r}."
            )
        if stray := [name for name in self.log if name not in (*self.targets, *self.numbers)]:
            raise click.UsageError(
                f"--log must be of --targets and --numbers; received {stray[0]!r}."
            )
        require_numbers(self, (*self.targets, *self.numbers), "--targets and --numbers")
        if self.cycles and (not self.time or self.gaps == "keep"):
            raise click.UsageError("--cycles needs --time, and steps without gaps.")
        if self.step and not self.time:
            raise click.UsageError("--step needs --time, the column of the time.")
        if self.step and self.gaps == "keep":
            raise click.UsageError(
                "--step and --gaps keep exclude each other: rows are as they come."
            )
        if self.model in ("qrnn", "transformer") and self.decoder == "recurrent":
            raise click.UsageError("--decoder recurrent goes with --model gru or lstm.")
        if self.model == "transformer" and self.units % self.num_heads:
            raise click.UsageError("--num-heads must divide --units.")
