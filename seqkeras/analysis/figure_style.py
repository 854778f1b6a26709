"""The common style of figures: colours, lines, frames, and writing PNG files."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from seqkeras.analysis.labels import families, notes_of, readable

INK, QUIET, RULE = "#1f2328", "#6e7781", "#d0d7de"
# Okabe and Ito 2008: distinct in every kind of colour blindness; with line styles for grey print.
STYLES = (
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "D"},
    {"color": "#E69F00", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (1, 2)), "marker": "P"},
)


def new_figure(width, height):
    """Return an empty figure of a size in inches, laid out around its later content."""
    figure = Figure(figsize=(width, height), dpi=120, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    FigureCanvasAgg(figure)
    return figure


def write_png(draw, path):
    """Write the figure that `draw()` returns to a PNG file, without the user's settings.

    The file is replaced if it exists; its folder must exist.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["font.family"] = families()
        figure = draw()
        for note in notes_of(text.get_text() for text in figure.findobj(Text)):
            figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=QUIET)
        figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)  # a third in bytes


def require_png(name, path):
    """Refuse a path of no PNG file, or in no folder, before the work of drawing.

    Args:
        name: the function that writes the file.
        path: the file.

    Raises:
        ValueError: if the path does not end in .png.
        OSError: if its folder is missing, or the path is a folder itself.
    """
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise ValueError(f"{name}: path must end in .png; received {str(path)!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{name}: the folder of path must exist; received {str(path)!r}. Make the folder "
            f"{str(path.parent)!r} first."
        )
    if path.is_dir():
        raise IsADirectoryError(f"{name}: path must be a file; received the folder {str(path)!r}.")


def frame(axes, heading, across, up, **legend):
    """Set title, axis labels, grid lines and legend of a panel."""
    plain = {"color": INK, "parse_math": False}  # a $ in a name begins no formula
    axes.set_title(readable(heading), loc="left", fontsize=12, **plain)
    axes.set_xlabel(readable(across), **plain)
    axes.set_ylabel(readable(up), **plain)
    axes.tick_params(colors=QUIET, which="both")
    axes.spines[:].set_color(RULE)
    axes.set_axisbelow(True)
    axes.legend(fontsize=9, title_fontsize=9, framealpha=0.9, edgecolor=RULE, **legend)
