"""Attention maps: which characters or words of the source a model attends to for each of the
target.

One PNG, one panel per example or per head: the source across, in the order in which a reader sees
it (an Arabic or Hebrew sentence begins at the right), the target down, the darker the cell the
larger the weight.

Not supported: line breaks in a long source; `labels.py` lists scripts without a font.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from seqkeras.analysis import token_labels
from seqkeras.analysis.figure_style import INK, QUIET, RULE
from seqkeras.analysis.labels import (
    SPACE,
    best_font,
    code_point,
    font_of,
    fonts,
    label,
    monospace,
    readable,
    reads_right_to_left,
    source_labels,
    visual_order,
)
from serving.text.encoding import Encoding, of_words

# Every length below is in cells, so that columns, labels and margins fall on whole pixels.
CELL_INCHES, DPI = 0.2, 160
MARGIN, GAP, HEADER, HEADER_WIDTH, ABOVE, BELOW, LEFT = 2, 3, 4, 33, 2, 2.5, 1

COLOUR_MAP = "Blues"  # one hue, light to dark: the order survives every kind of colour blindness


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """One example: two texts, and the attention of each character or word of the target.

    Args:
        source: the input: a string, S characters (code points), or a sequence of S strings, words
            or other tokens.
        target: the output, in the same form, T of them.
        weights: (T, S) attention weights; every row sums to one, or to zero if it attends to
            nothing.
        title: the line above the panel; the source itself by default.

    Raises:
        ValueError: if a text is empty, or weights are not a (T, S) array of such rows.
    """

    source: str | Sequence[str]
    target: str | Sequence[str]
    weights: np.ndarray
    title: str | None = None

    def __post_init__(self):
        for name in ("source", "target"):
            text = getattr(self, name)
            if not isinstance(text, str):
                text = tuple(text)
                object.__setattr__(self, name, text)
            if not text or not all(isinstance(token, str) for token in text):
                raise ValueError(
                    f"AttentionMap: {name} must hold at least one character, or strings; "
                    f"received {text!r}."
                )
        expected = (len(self.target), len(self.source))
        if np.shape(self.weights) != expected:
            raise ValueError(
                f"AttentionMap: weights must have shape (len(target), len(source)) = {expected}; "
                f"received {np.shape(self.weights)}."
            )
        weights = np.asarray(self.weights, dtype=float)
        sums = weights.sum(axis=1)
        wrong = ~((np.abs(sums - 1) < 1e-2) | (sums == 0))  # NaN too; bfloat16 errs by some 0.004
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"AttentionMap: every row of weights must sum to 1; received {sums[row]:.4g} in "
                f"row {row}. Pass weights after softmax, with all of their source positions."
            )
        if weights.min() < 0:
            raise ValueError(
                f"AttentionMap: weights must not be negative; received {weights.min():.4g}."
            )

    @property
    def line(self):
        """The text above the panel."""
        if self.title is not None:
            return self.title
        return self.source if isinstance(self.source, str) else " ".join(self.source)


def maps_of_heads(weights, source, target=None, layer=None, head=None):
    """An `AttentionMap` for each head of each layer.

    Args:
        weights: (L, N, T, S) of one example, as `model.attention_weights(inputs)["cross"][row]`, or
            (T, S), of no head in particular, as a bundle's answer has them. Rows and columns after
            the texts are padding, and left out.
        source, target: strings or sequences of tokens, see `AttentionMap`, or the `Encoding` of a
            text, whose whole words are the labels; the target is the source by default, as in
            self-attention.
        layer: the index of one layer, from 0; None for all.
        head: the index of one head, from 0; "mean" for the mean of all; None for all.

    Returns:
        A list of `AttentionMap`, layer by layer, to be drawn by `plot_attention_maps`.

    Raises:
        ValueError: if weights are of another rank or of fewer tokens, or there is no such layer or
            head.

    Reference: of words, Clark et al. 2019, section 4.1, https://arxiv.org/abs/1906.04341
    """
    weights = np.asarray(weights, dtype=float)
    target = source if target is None else target
    if weights.ndim not in (2, 4):
        raise ValueError(
            "maps_of_heads: weights must have shape (layers, heads, target, source) or (target, "
            f"source), those of one example; received {weights.shape}."
        )
    (target, target_counts), (source, source_counts) = map(_labels, (target, source))
    weights = of_words(weights, target_counts, source_counts)
    if weights.ndim == 2:
        return [AttentionMap(source, target, weights)]
    means = head == "mean"
    layers = _chosen("layer", layer, len(weights))
    heads = [None] if means else _chosen("head", head, weights.shape[1])
    return [
        AttentionMap(
            source,
            target,
            weights[place].mean(axis=0) if means else weights[place, number],
            f"layer {place}, {'mean of heads' if means else f'head {number}'}",
        )
        for place in layers
        for number in heads
    ]


def _labels(text):
    """The labels of a text, and the number of tokens of each."""
    if isinstance(text, Encoding):
        return zip(*text.words(), strict=True)
    return text, [1] * len(text)


def _chosen(name, number, count):
    """The selected indices, of `count`."""
    if number is None:
        return range(count)
    if type(number) is not int or not 0 <= number < count:
        ways = ', "mean"' if name == "head" else ""
        raise ValueError(
            f"maps_of_heads: {name} must be from 0 to {count - 1}{ways} or None for all; "
            f"received {number!r}."
        )
    return [number]


def plot_attention_maps(maps, path):
    """Draw attention maps, one panel each, into one PNG file.

    Args:
        maps: a sequence of AttentionMap, drawn row by row in this order.
        path: the file to write, replaced if it exists; its folder must exist.

    Raises:
        ValueError: if maps is empty.
    """
    attention_figure(maps).canvas.print_png(path)  # savefig would apply the user's rcParams


def attention_figure(maps):
    """The matplotlib Figure of `plot_attention_maps`; the axes "map 0", "map 1", ... are panels."""
    maps = list(maps)
    if not maps:
        raise ValueError("plot_attention_maps: maps must hold at least one map; received none.")
    figure = Figure(dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    texts = [panel.line for panel in maps]
    titles = [draw_title(figure, text) for text in texts]
    besides = [LEFT + room(figure, panel.target) for panel in maps]
    widths = [
        beside + max(len(panel.source), width_in_cells(title))
        for panel, title, beside in zip(maps, titles, besides, strict=True)
    ]
    heights = [len(panel.target) + room(figure, panel.source) for panel in maps]
    lefts, tops, width, height = arrange(widths, heights)
    figure.set_size_inches(width * CELL_INCHES, height * CELL_INCHES)

    largest = max(float(np.max(panel.weights)) for panel in maps)
    scale = {"vmin": 0.0, "vmax": min(1.0, math.ceil(10 * largest - 1e-6) / 10)}
    scale["cmap"] = COLOUR_MAP
    notes = set()
    for index, (panel, title) in enumerate(zip(maps, titles, strict=True)):
        left, top = lefts[index] + besides[index], tops[index] + ABOVE
        axes = add_axes(figure, left, top, len(panel.source), len(panel.target), f"map {index}")
        notes |= draw_map(axes, panel, scale)
        if reads_right_to_left(texts[index]):
            title.set_horizontalalignment("right")
            left += max(len(panel.source), width_in_cells(title))
        title.set_position((left / width, 1 - (top - 0.6) / height))
    draw_header(figure, scale, notes)
    return figure


def room(figure, text):
    """The additional cells that the tokens of a text need next to or below a map."""
    if isinstance(text, str):
        return 0
    return max(0, token_labels.room(figure, text, CELL_INCHES * DPI) - 1)


def arrange(widths, heights):
    """Positions of panels of these sizes, row by row, in the grid whose page is closest to square.

    Returns:
        their lefts, their tops, and the width and height of the page, all in cells.
    """

    def grid(columns):
        column_widths = [max(widths[column::columns]) + GAP for column in range(columns)]
        row_heights = [
            ABOVE + max(heights[start : start + columns]) + BELOW
            for start in range(0, len(heights), columns)
        ]
        lefts = list(itertools.accumulate(column_widths, initial=MARGIN))
        tops = list(itertools.accumulate(row_heights, initial=HEADER))
        return lefts, tops, max(HEADER_WIDTH, lefts[-1] - GAP + MARGIN), tops[-1] + 1

    grids = [grid(columns) for columns in range(1, len(widths) + 1)]
    lefts, tops, width, height = min(grids, key=lambda grid: max(grid[2:]))
    columns = len(lefts) - 1
    places = [divmod(index, columns) for index in range(len(widths))]
    return [lefts[column] for _, column in places], [tops[row] for row, _ in places], width, height


def add_axes(figure, left, top, columns, rows, label):
    """Axes of columns x rows cells whose data coordinates are cells, the origin at the top left."""
    width, height = figure.get_size_inches() / CELL_INCHES
    axes = figure.add_axes(
        (left / width, 1 - (top + rows) / height, columns / width, rows / height), label=label
    )
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=RULE, linewidth=0.8)
    return axes


def draw_map(axes, panel, scale):
    """Draw one panel; return the kinds of labels that the header must explain."""
    order = order_of(panel.source)
    weights = np.asarray(panel.weights, dtype=float)[:, order]
    axes.pcolormesh(weights, edgecolors="white", linewidth=0.5, **scale)
    kinds = set()
    if isinstance(panel.source, str):
        across = source_labels(panel.source)
        for column, index in enumerate(order):
            kinds.add(draw_label(axes, column + 0.5, len(panel.target) + 1.0, across[index]))
    else:
        for column, index in enumerate(order):
            token_labels.draw_below(axes, column, len(panel.target), panel.source[index])
    for row, text in enumerate(panel.target):
        if isinstance(panel.target, str):
            kinds.add(draw_label(axes, -0.75, row + 0.5, label(text)))
        else:
            token_labels.draw_beside(axes, row, text)
    return kinds


def order_of(source):
    """The indices of the characters or tokens from left to right, as a reader sees them."""
    if isinstance(source, str):
        return visual_order(source)
    order = list(range(len(source)))
    return order[::-1] if reads_right_to_left("".join(source)) else order


def draw_label(axes, x, y, text):
    """Draw a label centred on a cell: a glyph on the baseline, or a code point in small digits."""
    font = font_of(text)
    if font is None:
        digits = code_point(text[-1])
        middle = len(digits) // 2
        axes.text(
            x, y, f"{digits[:middle]}\n{digits[middle:]}", color=QUIET, linespacing=0.95,
            ha="center", va="center_baseline", font=FontProperties(fname=monospace(), size=6),
        )  # fmt: skip
        return "code point"
    drawn = axes.text(
        x, y + 0.25, text, color=QUIET if text == SPACE else INK, parse_math=False,
        ha="center", va="baseline", font=FontProperties(fname=font, size=10),
    )  # fmt: skip
    drawn.set_fontsize(10 * min(1, 0.95 / max(0.1, exact_width_in_cells(drawn))))
    return "space" if text == SPACE else "glyph"


def draw_title(figure, title):
    """Draw the title of a panel; `attention_figure` moves it to its place."""
    font = best_font(title)
    return figure.text(
        0, 0, readable(title, font), color=INK, va="baseline", parse_math=False,
        font=FontProperties(fname=font, size=10.5),
    )  # fmt: skip


def draw_header(figure, scale, kinds):
    """Draw the legend of all panels: how to read them, and the colour scale."""
    width, height = figure.get_size_inches() / CELL_INCHES
    notes = ["source across, target down; each row sums to 1"]
    notes += [f"{SPACE} space"] if "space" in kinds else []
    notes += ["small digits: a code point without a glyph"] if "code point" in kinds else []
    for x, y, text, size, colour, ha in (
        (MARGIN, 1.9, "Attention weights", 12, INK, "left"),
        (MARGIN, 3.1, "   ·   ".join(notes), 8, QUIET, "left"),
        (width - MARGIN - 7.5, 1.8, "0", 8, QUIET, "right"),
        (width - MARGIN - 1.5, 1.8, f"{scale['vmax']:g}", 8, QUIET, "left"),
    ):
        font = FontProperties(fname=fonts()[0], size=size)
        figure.text(x / width, 1 - y / height, text, color=colour, ha=ha, font=font)
    bar = add_axes(figure, width - MARGIN - 7, 1.3, 5, 0.6, "scale")
    ramp = np.linspace(0, scale["vmax"], 160)[None, :]
    bar.imshow(ramp, extent=(0, 5, 0.6, 0), aspect="auto", **scale)


def exact_width_in_cells(text):
    return text.get_window_extent().width / DPI / CELL_INCHES


def width_in_cells(text):
    return math.ceil(exact_width_in_cells(text))
