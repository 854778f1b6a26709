"""The PNG of `benchmarks.scaling`: time and memory against length, on log-log axes."""

from matplotlib.ticker import NullLocator

from seqkeras.analysis.figure_style import RULE, STYLES, frame, new_figure, write_png


def plot_scaling(points, slopes, path):
    """Draw the points into one PNG file.

    Args:
        points: list of `benchmarks.scaling.Point`.
        slopes: case -> (of time, of memory).
        path: the file to write, replaced if it exists; its folder must exist.
    """
    write_png(lambda: scaling_figure(points, slopes), path)


def scaling_figure(points, slopes):
    """Return the matplotlib Figure of `plot_scaling`."""
    figure = new_figure(11, 4.8)
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
    frame(axes, heading, "length of the sequence", unit, title="slope, longer lengths")
    axes.grid(color=RULE, linewidth=0.5)
