"""How every figure looks: inks, styles of lines, frames, and the way into a PNG file."""

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK, QUIET, RULE = "#1f2328", "#6e7781", "#d0d7de"
# Okabe and Ito 2008: told apart in every kind of colour blindness; a style each, for print in grey.
STYLES = (
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "D"},
    {"color": "#E69F00", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (1, 2)), "marker": "P"},
)


def new_figure(width, height):
    """An empty figure of so many inches, laid out around what it will hold."""
    figure = Figure(figsize=(width, height), dpi=120, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    FigureCanvasAgg(figure)
    return figure


def write_png(draw, path):
    """Write what `draw()` returns, a figure, into a PNG file; the user's settings are not heeded.

    The file is replaced if it exists; its folder must exist.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        draw().canvas.print_png(path)


def frame(axes, heading, across, up, **legend):
    """The words around a panel, its lines and its legend."""
    axes.set_title(heading, loc="left", color=INK, fontsize=11, fontweight="bold")
    axes.set_xlabel(across, color=INK)
    axes.set_ylabel(up, color=INK)
    axes.tick_params(colors=QUIET, which="both")
    axes.spines[:].set_color(RULE)
    axes.set_axisbelow(True)
    axes.legend(fontsize=9, title_fontsize=9, framealpha=0.9, edgecolor=RULE, **legend)
