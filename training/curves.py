"""Learning curves: the loss and every score against the steps."""

import math

from seqkeras.analysis.figure_style import STYLES, frame, new_figure, write_png

NOT_DRAWN = ("step", "seconds", "tokens_per_second")
TOGETHER = {"loss": "training", "validation_loss": "validation"}


def draw_curves(rows, path):
    """Draw a panel of the losses, and one for each other number, into a PNG.

    Args:
        rows: of history.csv, name -> value; a value may be missing.
        path: of the file.
    """
    write_png(lambda: _figure(rows), path)


def _figure(rows):
    names = dict.fromkeys(name for row in rows for name in row if name not in NOT_DRAWN)
    panels = [["loss", "validation_loss"], *([name] for name in names if name not in TOGETHER)]
    across = min(3, len(panels))
    down = math.ceil(len(panels) / across)
    figure = new_figure(4.2 * across, 3.2 * down)
    for axes, panel in zip(figure.subplots(down, across, squeeze=False).flat, panels):
        for name, style in zip(panel, STYLES):
            steps = [row["step"] for row in rows if name in row]
            values = [row[name] for row in rows if name in row]
            dense = {"marker": ""} if len(values) > 30 else {"markersize": 4}
            axes.plot(steps, values, label=TOGETHER.get(name, name), **style | dense)
        frame(axes, panel[0].replace("_", " "), "step", "")
    for axes in figure.axes[len(panels) :]:
        axes.set_axis_off()
    return figure
