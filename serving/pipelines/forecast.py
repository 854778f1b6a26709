"""Forecast the values that follow a series."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import require_flag, shown
from ..manifest import MANIFEST, BundleError, Manifest
from ..opening import Runtime
from ..results import Forecasting
from ..rows import GAPS, Rows, counted
from ..streams import Chunk, StreamGraph, Streaming
from .arrays import PADDING, ArrayReader, numbers, padded
from .batching import TOKEN_BUDGET
from .inputs import encoded, one_or_all
from .model import ROLE, Model, Packing, unwarned
from .pipeline import Pipeline
from .settings import read_settings, row_problems, wrong_output

WINDOW, KNOWN = "window", "known"


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    quantiles: tuple[float, ...] = ()
    rows: Rows | None = None
    naive_errors: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def problems(self, outputs):
        """Yield what is wrong."""
        axis = (len(self.quantiles),) if self.quantiles else ()
        axes = ("batch", "horizon", "targets", *axis)
        shape = outputs[self.output].shape if self.output in outputs else ()
        if len(shape) == len(axes) - 1 and shape[2:] == axis:
            axes = ("batch", "horizon", *axis)  # of one target
        if len(shape) == 4 and not self.quantiles:
            yield (
                f"settings.quantiles is missing: the model's output ({', '.join(map(str, shape))}) "
                "has a fourth axis, of quantiles"
            )
        else:
            yield from wrong_output(outputs, self.output, axes)
        bounds = [0, *self.quantiles, 1]
        if not all(low < high for low, high in zip(bounds, bounds[1:])):
            yield (
                "settings.quantiles must increase between 0 and 1; received "
                f"{', '.join(map(str, self.quantiles))}"
            )
        yield from row_problems(self.rows)


@dataclass(frozen=True, eq=False)
class _Row:
    """A window (length, features), known covariates (horizon, covariates) or None, and unknown
    categories by column."""

    window: np.ndarray
    known: np.ndarray | None
    unknown: dict

    def __len__(self):
        return len(self.window)


def _arrays(rows):
    """Return a batch of `_Row`s as arrays by name."""
    arrays = padded(WINDOW, [row.window for row in rows])
    if rows[0].known is not None:
        arrays[KNOWN] = np.stack([row.known for row in rows])
    return arrays


PACKED = Packing(
    _arrays,
    frozenset({WINDOW}),
    PADDING | {KNOWN},
    padded_by=PADDING,
    most_padding=None,
)


class Forecast(Pipeline):
    """The values that follow a series, one for each step and target, or quantiles of them.

    A model without lengths and padding mask gets batches of series of one length, without padding.
    A model of a single target may have no axis for it. With `settings.rows` it reads
    rows of a table (`serving.rows`) instead of numbers.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Attributes:
        fields: the names of an input's parts.
        rows: the `serving.rows.Rows` of the settings, or None.
        num_known_rows: number of steps of the future for which an input has known values.
        targets: names of the columns that are forecast and not known, with `settings.rows`.

    Raises:
        BundleError: if the graph or the settings are not what the pipeline needs.

    Example:
        >>> from seqkeras.serving import load
        >>> forecast = load("bundles/weather", threads=1)
        >>> past = [[0.1, 0.2, 0.3]] * 11  # 11 steps of 3 numbers, of which 2 are forecast
        >>> forecast([past])[0].values.shape
        (5, 2)
    """

    reads_json = True  # on the command line

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        self._model = Model(folder, manifest, runtime, [self._settings.output], PACKED)
        self._reader = ArrayReader.of_graph(folder, manifest, ROLE, WINDOW, "values")
        graph = (runtime or Runtime()).graphs_of(manifest)[ROLE]
        shapes = {spec.name: spec.shape for spec in graph.inputs}
        self._known_shape = shapes.get(KNOWN, (None,))[1:]
        if not all(isinstance(size, int) for size in self._known_shape):
            reason = "known must have fixed sizes of steps and covariates"
            raise BundleError(reason, where=folder, subject=MANIFEST)
        self.rows = self._settings.rows
        if self.rows is not None:
            shape = (shapes[WINDOW][-1], *self._known_shape[1:])
            expected = self.rows.num_features, self.rows.num_known
            if shape != expected[: 1 + bool(expected[1])]:
                reason = (
                    f"settings.rows are of {expected[0]} numbers a row and {expected[1]} a known "
                    f"one; the graph takes {' and '.join(map(str, shape))}"
                )
                raise BundleError(reason, where=folder, subject=MANIFEST)
        asks_known = self._known_shape and (self.rows is None or self.rows.known)
        self.fields = ("series", KNOWN) if asks_known else ("series",)
        self.num_known_rows = self._known_shape[0] if asks_known else 0
        self.targets = self._targets()
        stream = StreamGraph(folder, manifest, runtime, self._settings.output, {WINDOW, KNOWN})
        self.streaming = Streaming("Forecast", stream, self._follow, self._answer_of_row, self.rows)

    @overload
    def __call__(
        self, series: np.ndarray | tuple | Mapping[str, Any], *args: Any, **options: Any
    ) -> Forecasting: ...

    @overload
    def __call__(self, series: list, *args: Any, **options: Any) -> list[Forecasting]: ...

    def __call__(
        self,
        series: np.ndarray | tuple | Mapping[str, Any] | list,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        strict: bool = False,
        gaps: str = "refuse",
    ) -> Forecasting | list[Forecasting]:
        """Answer a series, or each series of a list.

        Args:
            series: an array (length,) or (length, features), or a tuple of its rows; for a model
                with known covariates, a dictionary of "series" and "known", (horizon, covariates);
                or a list of these. With `settings.rows` a row is a dictionary of values by column,
                or a list of them in order; None is a missing value.
            truncate: drop the oldest values of a series over the limit.
            token_budget: the most steps of a batch, padding among them.
            strict: refuse a row with a category that the model does not know; else the answer
                counts these in `unknown`.
            gaps: rows of a series that are missing by their times: "refuse" the series, or "fill"
                the gap with rows without values.

        Returns:
            A `Forecasting`; for a list, a list of them, in its order.

        Raises:
            ValueError: if a series is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        name = "Forecast: series"
        if gaps not in GAPS:
            raise ValueError(f"Forecast: gaps must be {' or '.join(GAPS)}; received {shown(gaps)}.")
        strict = require_flag("Forecast: strict", strict)
        encode = functools.partial(self.encode, strict=strict, gaps=gaps)
        rows = encoded(series, name, encode, truncate, token_budget, plural=name)
        answers = self._model.answer(
            rows, lambda index, values: self._answer(rows[index], values), token_budget
        )
        return one_or_all(series, answers, name, name)

    def encode(
        self,
        series: Any,
        name: str = "Forecast: series",
        truncate: bool = False,
        strict: bool = False,
        gaps: str = "refuse",
    ) -> Any:
        """Return the model's input: the window of a series, and known covariates.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        series, known = self._parts(series, name)
        unknown = []
        if self.rows is not None:
            series, known, unknown = self._of_rows(series, known, name, truncate, gaps == "fill")
        if strict and unknown:
            raise ValueError(str(unknown[0]))
        if self._known_shape:
            known = numbers(known, f"{name}, known")
            if known.shape != self._known_shape:
                raise ValueError(
                    f"{name}, known must have shape {self._known_shape}; received {known.shape}."
                )
        window = self._reader.read(series, name, truncate, keep_last=True)
        return _Row(window, known, counted(unknown))

    def _targets(self):
        """Return the names of the columns that are forecast: the first ones, unless known."""
        [output] = [
            spec
            for spec in self.manifest.graphs[ROLE].outputs
            if spec.name == self._settings.output
        ]
        has_axis = len(output.shape) == 3 + bool(self._settings.quantiles)
        columns = () if self.rows is None else self.rows.columns
        size = output.shape[2] if has_axis and isinstance(output.shape[2], int) else 1
        columns = columns[:size]
        return tuple(column.name for column in columns if not column.known)

    def _parts(self, series, name):
        """Return a series, and what is known of the future or None."""
        if isinstance(series, Mapping) and set(series) == set(self.fields):
            return series["series"], series.get(KNOWN)
        if isinstance(series, Mapping) or KNOWN in self.fields:
            parts = [*series] if isinstance(series, Mapping) else series
            raise ValueError(
                f"{name} must be a dictionary of {' and '.join(self.fields)}, which this model "
                f"reads; received {shown(parts)}."
            )
        return series, None

    def _follow(self, series, name, memory):
        """Return the `Chunk` of rows of a stream; what is known is told for each of them."""
        rows, known = self._parts(series, name)
        about, arrays = None, {}
        if self.rows is not None:
            series, times, memory = self.rows.following(rows, name, memory)
            about = [counted(self.rows.unknown([row], name)) for row in rows]
        arrays[WINDOW] = self._reader.read_chunk(series if about else rows, name)
        if self._known_shape:
            of_known = f"{name}, known"
            if self.rows is None:
                known = numbers(known, of_known)
            else:
                known = np.stack(
                    [
                        self.rows.future(
                            known_rows, time, self._known_shape[0], f"{of_known}, row {row + 1}"
                        )
                        for row, (known_rows, time) in enumerate(
                            self._known_of(known, times, rows, of_known)
                        )
                    ]
                )
            expected = (len(arrays[WINDOW]), *self._known_shape)
            if known.shape != expected:
                raise ValueError(f"{of_known} must have shape {expected}; received {known.shape}.")
            arrays[KNOWN] = known
        return Chunk(arrays, memory, about)

    def _known_of(self, known, times, rows, name):
        """Return (known rows, time) for each row of a stream."""
        if self.rows.known and (not isinstance(known, (list, tuple)) or len(known) != len(rows)):
            raise ValueError(
                f"{name} must be a list of {len(rows)}, for each row the "
                f"{self.num_known_rows} rows that follow it; received {shown(known)}."
            )
        known = known if self.rows.known else [None] * len(rows)
        return zip(known, [None] * len(rows) if times is None else times)

    def _of_rows(self, series, known, name, truncate, fills):
        """Return the numbers of rows, and of what is known, and a list of `Unknown`."""
        length, *_ = self._reader.shape
        num_rows = len(series) if isinstance(series, (tuple, list, np.ndarray)) else 0
        if num_rows and truncate:
            series = series[-self._reader.limit :]
        if num_rows and fills:
            series = self.rows.without_gaps(series, name)
            num_rows = len(series)
            series = series[-self._reader.limit :] if truncate else series
        if num_rows and isinstance(length, int) and len(series) != length:
            more = (
                ", or more and truncate" if num_rows < length else "; truncate keeps the last ones"
            )
            beside = (
                f", beside the {self.num_known_rows} rows that are read as the steps to forecast"
                if self.num_known_rows
                else ""
            )
            raise ValueError(f"{name} must have {length} rows{more}; received {num_rows}{beside}.")
        window, last = self.rows.window(series, name)
        unknown = self.rows.unknown(series, name)
        if not self._known_shape:
            return window, None, unknown
        of_known = f"{name}, known"
        future = self.rows.future(known, last, self._known_shape[0], of_known)
        return window, future, unknown + self.rows.unknown(known, of_known, known_alone=True)

    def _answer(self, row, values):
        return self._answer_of_row(values, None, row.unknown)

    def _answer_of_row(self, values, _, unknown):
        quantiles = self._settings.quantiles
        if values.ndim < 2 + bool(quantiles):
            values = values[:, np.newaxis]  # the targets
        return forecasting_of(values, quantiles, self.rows, unknown)


@unwarned
def forecasting_of(values, quantiles, rows=None, unknown=None):
    """Return the `Forecasting` of a model's answers.

    Args:
        values: (horizon, targets), or (horizon, targets, quantiles).
        quantiles: quantiles of the settings.
        rows: the `Rows` by which the model reads, or None.
        unknown: see `Forecasting`; None for nothing.
    """
    unknown = unknown or {}
    values = values if rows is None else rows.unscaled(values)
    if not quantiles:
        return Forecasting(values, {}, unknown)
    middle = min(range(len(quantiles)), key=lambda index: abs(quantiles[index] - 0.5))
    by_quantile = {quantile: values[..., index] for index, quantile in enumerate(quantiles)}
    return Forecasting(values[..., middle], by_quantile, unknown)
