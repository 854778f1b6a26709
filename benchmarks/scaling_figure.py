"""The PNG of `benchmarks.scaling`: time and memory against length, on log-log axes."""

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

INK, QUIET, RULE = "#1f2328", "#6e7781", "#d0d7de"
# Okabe and Ito 2008: told apart in every kind of colour blindness; a style each, for print in grey.
STYLES = (
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#E69F00", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "D"},
)


def plot_scaling(points, slopes, path):
    """Draw the points into one PNG file.

    Args:
        points: list of `benchmarks.scaling.Point`.
        slopes: case -> (of time, of memory).
        path: the file to write, replaced if it exists; its folder must exist.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the user's settings are not heeded
        scaling_figure(points, slopes).canvas.print_png(path)


def scaling_figure(points, slopes):
    """The matplotlib Figure of `plot_scaling`."""
    figure = Figure(figsize=(11, 4.8), dpi=120, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    FigureCanvasAgg(figure)
    time, memory = figure.subplots(1, 2)
    _draw(time, points, {case: both[0] for case, both in slopes.items()}, _milliseconds)
    _finish(time, "Time of a training step", "ms")
    _draw(memory, points, {case: both[1] for case, both in slopes.items()}, _megabytes)
    _finish(memory, "Peak memory of a training step", "MB")
    return figure


def _milliseconds(point):
    return point.seconds * 1000


def _megabytes(point):
    return point.megabytes


def _draw(axes, points, slopes, value):
    for style, (case, slope) in zip(STYLES, slopes.items()):
        own = [point for point in points if point.case == case]
        axes.plot(
            [point.length for point in own],
            [value(point) for point in own],
            label=f"{case}: {slope:.2f}",
            markersize=5,
            **style,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    lengths = sorted({point.length for point in points})
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())


def _finish(axes, heading, unit):
    """The words around a panel, and its frame."""
    axes.set_title(heading, loc="left", color=INK, fontsize=11, fontweight="bold")
    axes.set_xlabel("length of the sequence", color=INK)
    axes.set_ylabel(unit, color=INK)
    axes.tick_params(colors=QUIET, which="both")
    axes.spines[:].set_color(RULE)
    axes.set_axisbelow(True)
    axes.grid(color=RULE, linewidth=0.5)
    axes.legend(
        title="slope, longer lengths", fontsize=9, title_fontsize=9, framealpha=0.9, edgecolor=RULE
    )
