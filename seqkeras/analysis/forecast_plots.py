"""Forecasts beside what came, as a PNG."""

from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from seqkeras import files
from seqkeras.analysis.figure_style import INK, QUIET, RULE, STYLES, frame, new_figure, write_png


class ForecastPlot(NamedTuple):
    """One series of a picture.

    Attributes:
        title: of it.
        past, came, forecast: numbers of steps; NaN where one is missing. What came and the forecast
            begin after the past.
        quantiles: quantile -> numbers as the forecast; the outermost two make a band, the next two
            a band within it, and so on.
        naive: name -> numbers of a simple forecast beside it.
        times: datetime64 of the past and of what comes, or None for steps.
    """

    title: str
    past: np.ndarray
    came: np.ndarray
    forecast: np.ndarray
    quantiles: dict
    naive: dict
    times: np.ndarray | None = None


def plot_forecasts(plots, name, path):
    """Draw series below each other: the past, what came, and the forecast with its bands.

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
        _draw(axes, plot)
        across = "steps from the last one of the past" if axes is panels[-1] else ""
        across = across if plot.times is None else ""
        frame(axes, plot.title, across, name, loc="upper left", bbox_to_anchor=(1.01, 1))
        if axes is not panels[0]:
            axes.get_legend().remove()
    return figure


def _draw(axes, plot):
    steps = plot.times
    if steps is None:
        steps = np.arange(1 - len(plot.past), len(plot.forecast) + 1)
    else:
        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    past, future = np.split(steps, [len(plot.past)])
    axes.plot(past, plot.past, ".-", color=QUIET, label="past", ms=3)
    axes.plot(future, plot.came, ".:", color=INK, label="what came", ms=3)
    for style, (label, numbers) in zip(STYLES[1:], plot.naive.items()):
        axes.plot(future, numbers, color=style["color"], linestyle="--", label=label, lw=1)
    colour, levels = STYLES[0]["color"], sorted(plot.quantiles)
    axes.plot(future, plot.forecast, ".-", color=colour, label="forecast", ms=3)
    for index, (low, high) in enumerate(zip(levels[: len(levels) // 2], reversed(levels))):
        band, label = (plot.quantiles[low], plot.quantiles[high]), f"{low:g} to {high:g}"
        shade = 1 - (1 - 0.8 ** (index + 1)) * (1 - np.array(to_rgb(colour)))
        axes.fill_between(future, *band, color=shade, linewidth=0, label=label, zorder=1)
    axes.axvline(past[-1], color=RULE, linewidth=0.8)
