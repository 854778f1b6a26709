"""Panels of an attention map as cells: the source across, the target down."""

import numpy as np
from matplotlib.font_manager import FontProperties

from seqkeras.analysis import token_labels
from seqkeras.analysis.attention_page import Extent, Panels, exact_width_in_units
from seqkeras.analysis.figure_style import INK, QUIET
from seqkeras.analysis.labels import (
    SPACE,
    code_point,
    font_of,
    label,
    monospace,
    reads_right_to_left,
    source_labels,
    visual_order,
)

CHARACTER = 0.75  # cells between the middle of a character at the side and the panel


class Cells(Panels):
    """The darker the cell, the larger the weight."""

    name = "plot_attention_maps"
    notes = "source across, target down", "each row sums to 1"
    colours = "Blues"  # one hue, light to dark: the order survives every kind of colour blindness
    can_be_bare = True
    smallest = "a pixel for each weight"

    @staticmethod
    def extent(panel, room, cell):
        width, height = len(panel.source) * cell, len(panel.target) * cell
        if cell < 1:
            return Extent(0, width, 0, height, 0)
        below = 1.5 + room(panel.source)
        return Extent(1 + room(panel.target), width, 0, height, below)

    @staticmethod
    def draw(axes, panel, scale, cell):
        order = order_of(panel.source)
        weights = np.asarray(panel.weights, dtype=float)[:, order]
        if cell < 1:
            columns, rows = len(panel.source), len(panel.target)
            options = {"extent": (0, columns, rows, 0), "aspect": "auto", "interpolation": "none"}
            axes.imshow(weights.astype("float32"), **options, **scale)
            return
        axes.pcolormesh(weights, edgecolors="white", linewidth=0.5, **scale)
        if isinstance(panel.source, str):
            across = source_labels(panel.source)
            for column, index in enumerate(order):
                draw_character(axes, column + 0.5, len(panel.target) + 1.0, across[index])
        else:
            for column, index in enumerate(order):
                token_labels.draw_below(axes, column, len(panel.target), panel.source[index])
        draw_before(axes, panel.target)


def order_of(source):
    """Return the indices of the characters or tokens from left to right, as a reader sees them."""
    if isinstance(source, str):
        return visual_order(source)
    order = list(range(len(source)))
    return order[::-1] if reads_right_to_left("".join(source)) else order


def draw_before(axes, text):
    """Label the rows at the left with the characters or tokens of a text."""
    for row, token in enumerate(text):
        if isinstance(text, str):
            draw_character(axes, -CHARACTER, row + 0.5, label(token))
        else:
            token_labels.draw_beside(axes, row, token)


def draw_character(axes, x, y, text):
    """Draw a label centred on a cell: a glyph on the baseline, or a code point in small digits."""
    font = font_of(text)
    if font is None:
        digits = code_point(text[-1])
        middle = len(digits) // 2
        axes.text(
            x, y, f"{digits[:middle]}\n{digits[middle:]}", color=QUIET, linespacing=0.95,
            ha="center", va="center_baseline", font=FontProperties(fname=monospace(), size=6),
        )  # fmt: skip
        return
    drawn = axes.text(
        x, y + 0.25, text, color=QUIET if text == SPACE else INK, parse_math=False,
        ha="center", va="baseline", font=FontProperties(fname=font, size=10),
    )  # fmt: skip
    drawn.set_fontsize(10 * min(1, 0.95 / max(0.1, exact_width_in_units(drawn))))
