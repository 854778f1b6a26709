"""The picture of a study: the score of every trial, and the importance of the options."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqkeras.analysis.figure_style import STYLES, frame, new_figure, write_png


def draw_trials(
    trials: Sequence[Mapping[str, Any]], importance: Mapping[str, float], path: Path | str
) -> None:
    """Draw the trials of a study into a PNG.

    Args:
        trials: of each trial its number "trial", "score", None where it was ended early, and the
            scores of its "looks".
        importance: option -> share of the variance of the scores.
        path: path of the file.
    """
    write_png(lambda: _figure(trials, importance), path)


def _figure(trials, importance):
    figure = new_figure(4.8 * (1 + bool(importance)), 3.4)
    panels = figure.subplots(1, 1 + bool(importance), squeeze=False)[0]
    whole = [trial for trial in trials if trial["score"] is not None]
    ended = [trial for trial in trials if trial["score"] is None and trial["looks"]]
    numbers, scores = [trial["trial"] for trial in whole], [trial["score"] for trial in whole]
    axes = panels[0]
    points = {"linestyle": "none", "markersize": 5}
    axes.plot(numbers, scores, label="trial", **STYLES[0] | points | {"marker": "o"})
    if ended:
        last = [max(trial["looks"]) for trial in ended]
        numbers_ended = [trial["trial"] for trial in ended]
        axes.plot(numbers_ended, last, label="ended early", **STYLES[1] | points | {"marker": "x"})
    best = np.maximum.accumulate(scores)
    axes.step(numbers, best, where="post", label="best so far", **STYLES[2] | {"marker": ""})
    axes.xaxis.get_major_locator().set_params(integer=True)
    frame(axes, "score of each trial", "trial", "score")
    if importance:
        names = [*importance][::-1]
        shares = [importance[name] for name in names]
        panels[1].barh(names, shares, color="0.35", label="share")
        frame(panels[1], "importance of the options", "share of the variance", "")
        panels[1].get_legend().remove()
    return figure
