"""`seqkeras train forecasting`: its options, and what it is made of."""

from collections.abc import Iterable
from typing import Any, ClassVar

import click

from seqkeras.data.columns import require_columns
from seqkeras.data.series import GAPS
from seqkeras.data.time_steps import STEPS, named_step
from seqkeras.serving.times import CYCLES
from seqkeras.training.options import (
    POSITIVE,
    DataFile,
    FitOptions,
    Names,
    Number,
    Options,
    argument,
    at_least,
    option,
    part,
)
from seqkeras.training.options.baselines import BaselineOptions
from seqkeras.training.options.decimals import DecimalOptions
from seqkeras.training.options.members import MemberOptions
from seqkeras.training.options.positions import (
    OF_DISTANCES,
    position_kind_option,
    problems_of_transformers,
)
from seqkeras.training.options.spaces import CHOICE, DROPOUT, LAYERS, SIZE
from seqkeras.training.parts.forecasting_defaults import NO_CYCLE
from seqkeras.training.task import Task

SCALES = ("file", "window")


class Quantiles(click.ParamType):
    """Numbers between 0 and 1 that increase, with commas between them, as a tuple."""

    name = "quantiles"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        try:
            numbers = (
                [float(quantile) for quantile in value.split(",")]
                if isinstance(value, str)
                else value
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

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if not isinstance(value, str) or named_step(value) is None:
            self.fail(
                f"must be {', '.join(STEPS)}, or several as '15 minutes'; received {value!r}."
            )
        return value


class ForecastingOptions(FitOptions, task="forecasting"):
    """Forecast the values that follow a series, from a file with a row for each step.

    Your file looks like this (.csv; .tsv; .jsonl with an object a line). A field without a value is
    empty, or NA:

        time,load,temperature,tariff
        2024-01-01 00:00,41.5,3.1,night
        2024-01-01 01:00,,3.0,night

        seqkeras train forecasting load.csv --out runs/load --time time --targets load \\
            --numbers temperature --categories tariff --cycles day,week --context 168 --horizon 24

    The last rows of the file are held out. The scores stand beside the scores of the last value
    (persistence), the last season (seasonal naive), harmonics of the calendar (climatology), ridge
    regression and exponential smoothing.
    """

    file: str = argument(DataFile(), "Training file: .csv, .tsv or .jsonl.")
    targets: tuple = option((), Names(), "Columns to forecast, separated by commas.")
    numbers: tuple = option((), Names(), "Columns of further numbers that the model reads.")
    categories: tuple = option((), Names(), "Columns of categories that the model reads.")
    known: tuple = option(
        (), Names(), "Columns whose future values are known at forecast time, such as a schedule."
    )
    log: tuple = option(
        (),
        Names(),
        "Columns of targets and numbers that the model reads as log(1 + x); no value may be below "
        "0.",
    )
    decimals: DecimalOptions = part(DecimalOptions)
    time: tuple = option((), Names(), "Column of the time; or columns of year, month, day, ….")
    time_format: str | None = option(
        None,
        str,
        "Form of the times: a pattern of strptime, such as %d.%m.%Y; or s, ms, us or ns since "
        "1970. Default: ISO 8601, or a number since 1970.",
    )
    step: str | None = option(
        None,
        Step(),
        "Time between two rows, such as month, business-day or 15 minutes. Default: inferred from "
        "the times.",
    )
    cycles: tuple | None = option(
        None,
        Names((*CYCLES, NO_CYCLE)),
        f"Cycles of the time that the model reads: {', '.join(CYCLES)}, or {NO_CYCLE}. Default: "
        "those that the training rows show twice; none with --causal or --gaps keep.",
    )
    gaps: str = option(
        "few",
        click.Choice(GAPS),
        "Handling of missing rows: fill gaps with empty rows where at most one row in 100 is "
        "missing, and refuse others (few); refuse any; fill any; or keep rows as they come.",
    )
    series_column: str | None = option(None, str, "Column that tells several series apart.")
    context: int | None = option(
        None,
        at_least(2),
        "Past steps that the model reads. Default: a week of hours, 120 days, 104 weeks, 36 "
        "months, 12 quarters or 24 years, at most a third of the training rows; else 96.",
    )
    horizon: int = option(24, at_least(1), "Future steps that the model forecasts.")
    held_out: float | None = option(
        None,
        Number(0, 1, min_open=True, max_open=True),
        "Share of the steps, from the end, that is held out for validation. Default: 0.1, or as "
        "many as hold two horizons, at most 0.3.",
    )
    beside: BaselineOptions = part(BaselineOptions)
    ensemble: MemberOptions = part(MemberOptions)
    period: int | None = option(
        None,
        at_least(1),
        "Steps in a season, such as 24 hours; the seasonal naive forecast repeats the last "
        "season. 1: no season. Default: a day, a week or a year, by the time between rows.",
    )
    model: str = option(
        "gru",
        click.Choice(["gru", "lstm", "qrnn", "transformer"]),
        "Layers that read the past.",
        search=CHOICE,
    )
    decoder: str = option(
        "direct",
        click.Choice(["direct", "recurrent"]),
        "Decoder: all future steps at once (direct), or one by one (recurrent).",
    )
    quantiles: tuple = option(
        (),
        Quantiles(),
        "Quantiles to forecast, such as 0.1,0.5,0.9. Default: one value for each step.",
    )
    calibrate: bool = option(
        True,
        bool,
        "Factors of the distances between --quantiles, fitted after training on the held-out "
        "windows: a band of 80 % holds 80 % of what comes.",
    )
    loss: str = option("mae", click.Choice(["mae", "mse"]), "Loss without --quantiles.")
    causal: bool = option(
        False,
        bool,
        "Read a series from its start, and forecast after each row; the model can stream (export "
        "--stream). Training reads windows of several lengths, up to --context.",
    )
    carry_every: int | None = option(
        None,
        at_least(1),
        "Steps of a training window of a --causal model, which carries its state from window to "
        "window of a series and forecasts after each step; the gradient ends where a window "
        "begins. Default: windows of several lengths, up to --context.",
    )
    attention_window: int | None = option(
        None, at_least(1), "Past steps that a causal Transformer attends to."
    )
    position_kind: str | None = position_kind_option(
        "a Transformer", "sinusoid; with --causal a convolution tells the order"
    )
    linear: bool | None = option(
        None,
        bool,
        "Linear forecast, found by regression, that the network adds to. Default: true; false with "
        "--causal.",
    )
    scale_by: str | None = option(
        None,
        click.Choice(SCALES),
        "Scaling of the targets: by the training rows (file), or of each window by itself "
        "(window). Default: window where the file has several series; file with --causal.",
    )
    from_last: bool = option(
        True, bool, "Forecast the difference from the last value, where there is no --linear."
    )
    units: int = option(64, at_least(1), "Size of each layer.", search=SIZE)
    num_layers: int = option(1, at_least(1), "Layers of the model.", search=LAYERS)
    num_heads: int = option(4, at_least(1), "Attention heads of a Transformer.")
    dropout: float = option(
        0.1, Number(0, 1, max_open=True), "Dropout rate of layer inputs.", search=DROPOUT
    )
    batch_size: int = option(32, at_least(1), "Windows in a batch.")
    learning_rate: float = option(2e-3, POSITIVE, "Learning rate at the end of warm-up.")
    passes: int | None = option(
        None,
        at_least(1),
        "Passes over the training windows (epochs). Default: 10; fewer where 3,000 steps need "
        "fewer.",
    )

    REQUIRED: ClassVar = {"targets": "the columns to forecast"}
    USUAL = ("numbers", "categories", "time", "context", "horizon", "quantiles")

    def has_bands(self) -> bool:
        """Return whether there are bands that are calibrated."""
        return self.calibrate and len(self.quantiles) > 1

    def make(self) -> Task:
        from seqkeras.training.parts import forecasting as parts
        from seqkeras.training.parts.forecasting_reading import ForecastingReading

        kinds = ForecastingReading, parts.ForecastingModelling, parts.ForecastingScoring
        return Task.of(self, *kinds, parts.ForecastingCalibrating)

    def require_files(self) -> None:
        require_columns(self.file, self._columns())

    def _columns(self):
        """Return the columns that are read."""
        series = () if self.series_column is None else (self.series_column,)
        return (*series, *self.time, *self.targets, *self.numbers, *self.categories)

    def problems(self, command: Options) -> Iterable[str]:
        named = self._columns()
        if len(set(named)) < len(named):
            yield (
                "--targets, --numbers, --categories, --time and --series-column must name "
                "different columns."
            )
        if stray := [name for name in self.known if name not in (*self.numbers, *self.categories)]:
            yield (f"--known must be of --numbers and --categories; received {stray[0]!r}.")
        if stray := [name for name in self.log if name not in (*self.targets, *self.numbers)]:
            yield (f"--log must be of --targets and --numbers; received {stray[0]!r}.")
        columns = (*self.targets, *self.numbers)
        yield from self.decimals.problems_of_columns(columns, "--targets and --numbers")
        has_cycles = self.cycles and self.cycles != (NO_CYCLE,)
        if has_cycles and (not self.time or self.gaps == "keep"):
            yield "--cycles needs --time, and steps without gaps."
        if self.cycles and NO_CYCLE in self.cycles and len(self.cycles) > 1:
            yield f"--cycles: {NO_CYCLE} stands alone; received {','.join(self.cycles)}."
        if self.causal and self.linear:
            yield "--linear is for windows of one length; leave it out with --causal."
        if self.causal and self.scale_by == "window":
            yield "--scale-by window is for windows of one length; choose file with --causal."
        if self.step and not self.time:
            yield "--step needs --time, the column of the time."
        if self.step and self.gaps == "keep":
            yield ("--step and --gaps keep exclude each other: rows are as they come.")
        if self.model in ("qrnn", "transformer") and self.decoder == "recurrent":
            yield "--decoder recurrent goes with --model gru or lstm."
        if self.causal and self.decoder == "recurrent":
            yield "--causal: forecasts all steps at once; leave out --decoder recurrent."
        yield from problems_of_transformers(self, "model")
        if self.model == "transformer" and self.causal != (self.attention_window is not None):
            yield "--attention-window goes with --causal, which needs it with --model transformer."
        if self.causal and self.position_kind not in (None, *OF_DISTANCES):
            yield (
                f"--position-kind {self.position_kind}: --causal reads series without an end; "
                "choose relative or bias, or leave it out."
            )
        if self.carry_every is not None and not self.causal:
            yield "--carry-every is for --causal models."
        if self.carry_every is not None and self.batch_tokens is not None:
            yield "--carry-every: each row goes on; choose --batch-size, not --batch-tokens."
        if self.model == "transformer" and self.units % self.num_heads:
            yield "--num-heads must divide --units."
