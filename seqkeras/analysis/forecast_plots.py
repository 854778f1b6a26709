"""Forecasts beside what came, as a PNG."""

from typing import NamedTuple

import numpy as np

from seqkeras import files
from seqkeras.analysis.figure_style import QUIET, RULE, STYLES, frame, new_figure, write_png


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
        name: name of what the numbers are.
        path: path of the PNG.
    """
    with files.written_aside(path) as aside:
        write_png(lambda: forecast_figure(plots, name), aside)


def forecast_figure(plots, name):
    """Return the matplotlib Figure of `plot_forecasts`."""
    figure = new_figure(11, 2.6 * len(plots))
    panels = figure.subplots(len(plots), 1, squeeze=False)[:, 0]
    for axes, plot in zip(panels, plots):
        past = np.arange(1 - len(plot.past), 1)
        axes.plot(past, plot.past, ".-", color=QUIET, label="past", ms=3)
        steps = np.arange(1, len(plot.forecast) + 1)
        axes.plot(steps, plot.came, ".:", color=QUIET, label="what came", ms=3)
        colour = STYLES[0]["color"]
        axes.plot(steps, plot.forecast, ".-", color=colour, label="forecast", ms=3)
        if len(plot.quantiles) > 1:
            low, *_, high = sorted(plot.quantiles)
            band = plot.quantiles[low], plot.quantiles[high]
            label = f"{low:g} to {high:g}"
            axes.fill_between(steps, *band, color=colour, alpha=0.2, label=label)
        axes.axvline(0.5, color=RULE, linewidth=0.8)
        across = "steps from the last one of the past" if axes is panels[-1] else ""
        frame(axes, plot.title, across, name, loc="upper left", ncols=4)
        if axes is not panels[0]:
            axes.get_legend().remove()
    return figure
