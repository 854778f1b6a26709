"""Learning curves: the loss and every other number of a training against the steps."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqkeras.analysis.figure_style import STYLES, frame, new_figure, write_png

NOT_DRAWN = ("step", "seconds", "tokens_per_second")
VALIDATION = "validation_"  # before the name of what training has, too


def draw_curves(rows: Sequence[Mapping[str, Any]], path: Path | str) -> None:
    """Draw a panel for each number, training and validation together, into a PNG.

    Args:
        rows: rows of history.csv, name -> value; a value may be missing.
        path: path of the file.
    """
    write_png(lambda: _figure(rows), path)


def _figure(rows):
    names = dict.fromkeys(name for row in rows for name in row if name not in NOT_DRAWN)
    ordered = sorted(names, key=lambda name: name.removeprefix(VALIDATION) != "loss")
    panels = {}
    for name in ordered:
        measure = name.removeprefix(VALIDATION)
        panels.setdefault(measure if measure in names else name, []).append(name)
    across = min(3, len(panels))
    down = math.ceil(len(panels) / across)
    figure = new_figure(4.2 * across, 3.2 * down)
    for axes, (heading, panel) in zip(
        figure.subplots(down, across, squeeze=False).flat, panels.items()
    ):
        for name, style in zip(sorted(panel, key=len), STYLES):
            steps = [row["step"] for row in rows if name in row]
            values = [row[name] for row in rows if name in row]
            dense = {"marker": ""} if len(values) > 30 else {"markersize": 4}
            label = "validation" if name.startswith(VALIDATION) else "training"
            axes.plot(steps, values, label=label, **style | dense)
        frame(axes, heading.replace("_", " "), "step", "")
        if len(panel) == 1:
            axes.get_legend().remove()
    for axes in figure.axes[len(panels) :]:
        axes.set_axis_off()
    return figure
