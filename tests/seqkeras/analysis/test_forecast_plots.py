"""Pictures of forecasts and curves: names of columns in any script, without boxes or formulas."""

import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from seqkeras.analysis.figure_style import frame, new_figure, write_png
from seqkeras.analysis.forecast_plots import ForecastPlot, forecast_figure, plot_forecasts

NAMES = ["東京 の きおん", "مبيعات", "price $ and a$b$"]


def plot(title, count=1):
    numbers = np.arange(5.0)
    quantiles = {level: numbers + 10 * (level - 0.5) for level in (0.1, 0.25, 0.5, 0.75, 0.9)}
    naive = {"persistence": numbers * 0}
    return [ForecastPlot(title, numbers, numbers, numbers + 1, quantiles, naive)] * count


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_and_series_are_drawn_as_they_are(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a glyph that is missing
        plot_forecasts(plot(name), name, tmp_path / "forecast.png")
    [axes] = forecast_figure(plot(name), name).axes
    assert axes.get_title(loc="left").strip("\u200f") == axes.get_ylabel().strip("\u200f") == name


def test_a_script_without_a_font_is_named_and_noted(tmp_path):
    written = []

    def draw():
        written.append(new_figure(5, 3))
        axes = written[0].subplots()
        axes.plot([1, 2], label="x")
        frame(axes, "ราคา 2", "नमस्ते", "y")
        return written[0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_png(draw, tmp_path / "figure.png")
    [axes] = written[0].axes
    assert axes.get_title(loc="left") == "[Thai] 2" and axes.get_xlabel() == "[Devanagari]"
    assert written[0].get_supxlabel() == "in brackets: a script that no font here has"


def test_series_share_a_legend_and_the_users_settings_are_not_heeded(tmp_path):
    first, *others = forecast_figure(plot("a", 3), "y").axes
    labels = [text.get_text() for text in first.get_legend().get_texts()]
    assert labels == [
        *("past", "what came", "persistence", "forecast", "0.1 to 0.9", "0.25 to 0.75"),
    ]
    assert [axes.get_legend() for axes in others] == [None, None]
    assert others[-1].get_xlabel() == "steps from the last one of the past"
    plot_forecasts(plot("北京"), "y", tmp_path / "a.png")
    with matplotlib.rc_context({"font.family": "no such font", "font.weight": "bold"}):
        plot_forecasts(plot("北京"), "y", tmp_path / "b.png")
    np.testing.assert_array_equal(imread(tmp_path / "a.png"), imread(tmp_path / "b.png"))
