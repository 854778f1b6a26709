"""The values that follow a series."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import shown
from ..manifest import BundleError, Manifest
from ..opening import Runtime, open_session
from ..results import Forecasting
from .batching import TOKEN_BUDGET, answer_in_batches
from .inputs import encoded, one_or_all, too_long
from .model import ROLE
from .pipeline import Pipeline
from .settings import read_settings, wrong_output


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    quantiles: tuple[float, ...] = ()

    def problems(self, outputs):
        """Yield what is wrong."""
        axes = ("batch", "horizon", "targets")
        axes += (len(self.quantiles),) if self.quantiles else ()
        yield from wrong_output(outputs, self.output, axes)
        bounds = [0, *self.quantiles, 1]
        if not all(low < high for low, high in zip(bounds, bounds[1:])):
            yield (
                "settings.quantiles must increase between 0 and 1; received "
                f"{', '.join(map(str, self.quantiles))}"
            )


class Forecast(Pipeline):
    """The values that follow a series, one for each step and target, or quantiles of them.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph or the settings are not what the pipeline needs.
    """

    reads_json = True  # on the command line

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        runtime = runtime or Runtime()
        self._session = open_session(
            folder,
            manifest,
            ROLE,
            runtime,
            {"window", "lengths"},
            {self._settings.output},
            optional={"known"},
        )
        shapes = {spec.name: spec.shape for spec in runtime.graphs_of(manifest)[ROLE].inputs}
        self._num_features = shapes["window"][-1]
        self._known_shape = shapes.get("known", (None,))[1:]
        if not all(isinstance(size, int) for size in (self._num_features, *self._known_shape)):
            raise BundleError(
                f"{folder}: manifest.json must name the number of features, and what is known of "
                "which steps, in numbers. Export the bundle again."
            )

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
    ) -> Forecasting | list[Forecasting]:
        """Answer a series, or each series of a list.

        Args:
            series: an array (length,) or (length, features), or a tuple of its rows; where the
                model asks for what is known of the future, a dictionary of "series" and "known",
                (horizon, covariates); or a list of such.
            truncate: forget the oldest values of a series that is over the limit.
            token_budget: the most steps of a batch, padding among them.

        Returns:
            A `Forecasting`; for a list, the list of theirs, in its order.

        Raises:
            ValueError: if a series is refused; nothing is answered then.
        """
        name = "Forecast: series"
        rows = encoded(series, name, self.encode, truncate, token_budget, plural=name)
        lengths = [len(window) for window, _ in rows]
        values = answer_in_batches(rows, lengths, self._run, token_budget)
        return one_or_all(series, [self._answer(each) for each in values])

    def encode(
        self, series: Any, name: str = "Forecast: series", truncate: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the window (length, features) and what is known, (horizon, covariates) or None.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        fields = ("series", "known") if self._known_shape else ("series",)
        if isinstance(series, Mapping) and set(series) == set(fields):
            series, known = series["series"], series.get("known")
        elif isinstance(series, Mapping) or self._known_shape:
            given = [*series] if isinstance(series, Mapping) else series
            raise ValueError(
                f"{name} must be a dictionary of {' and '.join(fields)}, which this model reads; "
                f"received {shown(given)}."
            )
        else:
            known = None
        if self._known_shape:
            known = _array(known, f"{name}, known")
            if known.shape != self._known_shape:
                raise ValueError(
                    f"{name}, known must have shape {self._known_shape}; received {known.shape}."
                )
        return self._window(_array(series, name), name, truncate), known

    def _window(self, series, name, truncate):
        if series.ndim == 1 and self._num_features == 1:
            series = series[:, np.newaxis]
        if series.ndim != 2 or series.shape[1] != self._num_features or not len(series):
            raise ValueError(
                f"{name} must have shape (length, {self._num_features}); received {series.shape}. "
                "A list is several series: give one as an array or a tuple."
            )
        limit = self.manifest.limits.source_length
        if len(series) > limit and not truncate:
            raise ValueError(too_long(name, len(series), limit, unit="values"))
        return series[-limit:]

    def _run(self, rows):
        lengths = np.array([len(window) for window, _ in rows])
        padded = np.zeros((len(rows), lengths.max(), self._num_features), "float32")
        for row, (window, _) in zip(padded, rows):
            row[: len(window)] = window
        inputs = {"window": padded, "lengths": lengths}
        if self._known_shape:
            inputs["known"] = np.stack([known for _, known in rows])
        [values] = self._session.run([self._settings.output], inputs)
        return list(values)

    def _answer(self, values):
        quantiles = self._settings.quantiles
        if not quantiles:
            return Forecasting(values, {})
        middle = min(range(len(quantiles)), key=lambda place: abs(quantiles[place] - 0.5))
        by_quantile = {each: values[..., place] for place, each in enumerate(quantiles)}
        return Forecasting(values[..., middle], by_quantile)


def _array(value, name):
    """Return numbers as a float32 array.

    Raises:
        ValueError: if they are none, or not finite.
    """
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"{given.dtype} is no kind of real numbers")
        with np.errstate(over="ignore"):
            array = given.astype("float32")
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers; received {shown(value)}.") from error
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers in float32; received {shown(value)}.")
    return array
