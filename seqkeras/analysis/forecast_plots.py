"""Forecasts beside what came, as a PNG."""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from seqkeras import files


class ForecastPlot(NamedTuple):
    """One series of a picture.

    Attributes:
        title: of it.
        past, came, forecast: numbers of steps; NaN where one is missing. What came and the forecast
            begin behind the past.
        quantiles: quantile -> numbers as the forecast; of two or more the outermost make a band.
    """

    title: str
    past: np.ndarray
    came: np.ndarray
    forecast: np.ndarray
    quantiles: dict


def plot_forecasts(plots, name, path):
    """Draw series below each other: the past, what came, and the forecast with its band.

    Args:
        plots: list of `ForecastPlot`s.
        name: of what the numbers are.
        path: of the PNG.
    """
    drawn = Figure(figsize=(11, 2.6 * len(plots)), layout="constrained")
    axes = drawn.subplots(len(plots), 1, squeeze=False)[:, 0]
    for axis, plot in zip(axes, plots):
        axis.plot(
            np.arange(1 - len(plot.past), 1), plot.past, ".-", color="0.4", label="past", ms=3
        )
        steps = np.arange(1, len(plot.forecast) + 1)
        axis.plot(steps, plot.came, ".:", color="0.4", label="what came", ms=3)
        axis.plot(steps, plot.forecast, ".-", color="tab:blue", label="forecast", ms=3)
        if len(plot.quantiles) > 1:
            low, *_, high = sorted(plot.quantiles)
            band = plot.quantiles[low], plot.quantiles[high]
            label = f"{low:g} to {high:g}"
            axis.fill_between(steps, *band, color="tab:blue", alpha=0.2, label=label)
        axis.axvline(0.5, color="0.8", linewidth=0.8)
        axis.set_title(plot.title, loc="left", fontsize="small")
        axis.set_ylabel(name)
    axes[0].legend(loc="upper left", fontsize="small", ncols=4)
    axes[-1].set_xlabel("steps from the last one of the past")
    with files.written_aside(path) as aside:
        drawn.savefig(aside, format="png", dpi=100)
