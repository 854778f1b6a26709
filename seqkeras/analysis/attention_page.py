"""The page of panels that show attention: the header, the grid of titled panels, and a size that
viewers open.

What a panel looks like is the hook, a `Panels`. Lengths are in units of `UNIT_INCHES`, a whole
number of pixels, so that cells, labels and margins fall on whole pixels.
"""

import functools
import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from seqkeras.analysis import token_labels
from seqkeras.analysis.figure_style import INK, QUIET, RULE
from seqkeras.analysis.labels import (
    SPACE,
    font_of,
    font_of_texts,
    label,
    notes_of,
    readable,
    reads_right_to_left,
)

UNIT_INCHES = 0.2
MARGIN, GAP, ABOVE, BELOW = 2, 3, 2, 1
HEADING, BAR = "Attention weights", 5
TITLE = 30  # the least room of a title that may be cut

MOST_PIXELS = 8000  # a side; at 9,500 by 9,500 PIL warns of a "decompression bomb"
LABELLED = (32, 28, 24, 20, 16, 14)  # pixels of a unit, and of a cell; labels of fewer are blurs
BARE_UNIT = 20  # pixels, of pages without labels
BARE_CELLS = (12, 10, 8, 6, 5, 4, 3, 2, 1)  # pixels


class Extent(NamedTuple):
    """The units that a panel needs: its axes, and the labels around them."""

    before: float
    width: float
    after: float
    height: float
    below: float


class Panels:
    """The layout of a page of attention maps.

    Attributes:
        name: the public function, for errors.
        notes: how to read a panel, each a line of the header.
        colours: the colour map, from no weight to the largest.
        can_be_bare: whether a panel tells something without labels.
        smallest: what must be there at the smallest size, for errors.
    """

    name: str
    notes: tuple
    colours: object
    can_be_bare: bool
    smallest: str

    @staticmethod
    def extent(panel, room, cell):
        """Return the `Extent` of a map.

        Args:
            panel: an AttentionMap.
            room: a function from a text to the units that its labels need beside a cell.
            cell: the units of a cell; less than 1: without labels.
        """
        raise NotImplementedError

    @staticmethod
    def draw(axes, panel, scale, cell):
        """Draw a map into axes whose data coordinates are cells, the origin at the top left."""
        raise NotImplementedError


def page_figure(maps, panels):
    """Return the matplotlib Figure of maps, as large as labels need; smaller where it would be too
    large.

    Args:
        maps: an AttentionMap, or a sequence of them.
        panels: a subclass of `Panels`.

    Raises:
        ValueError: if there is no map, or they do not fit in the largest picture.
    """
    maps = list(maps) if isinstance(maps, Iterable) else [maps]
    if not maps:
        raise ValueError(f"{panels.name}: maps must hold at least one map; received none.")
    sizes = [(unit, 1) for unit in LABELLED]
    if panels.can_be_bare:
        sizes += [(BARE_UNIT, pixels / BARE_UNIT) for pixels in BARE_CELLS]
    largest, *others = (functools.partial(Page, maps, panels, *size) for size in sizes)
    if (page := largest()).fits():
        return page.draw()
    if others[-1]().fits():
        return next(page for page in (smaller() for smaller in others) if page.fits()).draw()
    rows = max(len(panel.target) for panel in maps)
    columns = max(len(panel.source) for panel in maps)
    raise ValueError(
        f"{panels.name}: the picture must fit in {MOST_PIXELS} x {MOST_PIXELS} pixels, with "
        f"{panels.smallest}; received maps x target x source = {len(maps)} x {rows} x {columns}. "
        "Pass layer= and head= to maps_of_heads, or shorter texts."
    )


class Page:
    """A page with a place for everything, in units; `draw` draws it.

    Args:
        maps: a list of AttentionMap.
        panels: a subclass of `Panels`.
        unit: the pixels of a unit.
        cell: the units of a cell; less than 1: without labels.
    """

    def __init__(self, maps, panels, unit, cell):
        self.maps, self.panels, self.unit, self.cell = maps, panels, unit, cell
        self.figure = Figure(dpi=unit / UNIT_INCHES, facecolor="white")
        FigureCanvasAgg(self.figure)
        room = functools.cache(self._room)  # heads share their texts
        self.extents = [panels.extent(panel, room, cell) for panel in maps]
        self.titles = [
            self._title(panel, extent.width + extent.after)
            for panel, extent in zip(maps, self.extents)
        ]
        self.widths = [
            extent.before + max(extent.width + extent.after, width_in_units(title))
            for extent, title in zip(self.extents, self.titles)
        ]
        heights = [extent.height + extent.below for extent in self.extents]
        notes = [*panels.notes, *(characters(maps) if cell == 1 else ["too small for labels"])]
        headers = wide_header(self.figure, notes), narrow_header(self.figure, notes)
        self.header, self.lefts, self.tops, self.width, self.height = arrange(
            self.widths, heights, headers
        )
        pixels = np.array([self.width, self.height]) * unit + 1e-6  # lest 1056 become 1055.99
        self.figure.set_size_inches(pixels / self.figure.dpi)

    def fits(self):
        """Return whether the page is no larger than the largest picture."""
        return max(self.width, self.height) * self.unit <= MOST_PIXELS

    def draw(self):
        """Draw everything; returns the Figure."""
        largest = max(float(np.max(panel.weights)) for panel in self.maps)
        scale = {"vmin": 0.0, "vmax": min(1.0, math.ceil(10 * largest - 1e-6) / 10)}
        scale["cmap"] = self.panels.colours
        for index, (panel, extent) in enumerate(zip(self.maps, self.extents)):
            left, top = self.lefts[index] + extent.before, self.tops[index] + ABOVE
            axes = self._axes(left, top, extent.width, extent.height, f"map {index}")
            axes.set(xlim=(0, extent.width / self.cell), ylim=(extent.height / self.cell, 0))
            self.panels.draw(axes, panel, scale, self.cell)
            title = self.titles[index]
            if reads_right_to_left(panel.line):
                title.set_horizontalalignment("right")
                left = self.lefts[index] + self.widths[index]
            title.set_position((left / self.width, 1 - (top - 0.6) / self.height))
        self._draw_header(scale)
        return self.figure

    def _room(self, text):
        if self.cell < 1 or isinstance(text, str):
            return 0
        return max(0, token_labels.room(self.figure, text, UNIT_INCHES * self.figure.dpi) - 1)

    def _title(self, panel, width):
        """Return the title of a panel; a text that is its own title is cut to the panel's width."""
        text = panel.line
        title = _write_title(self.figure, text)
        width = max(width, TITLE)
        while panel.title is None and len(text) > 1 and width_in_units(title) > width:
            fitting = math.floor(len(text) * width / width_in_units(title))
            text = text[: min(fitting, len(text) - 1) - 1] + "…"
            title.remove()
            title = _write_title(self.figure, text)
        return title

    def _axes(self, left, top, width, height, name):
        page = self.width, self.height
        box = np.array([left, self.height - top - height, width, height]) / (*page, *page)
        axes = self.figure.add_axes(tuple(box), label=name)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(visible=True, color=RULE, linewidth=0.8)
        return axes

    def _draw_header(self, scale):
        """Draw the legend of all panels: how to read them, and the colours."""
        header = self.header
        for line in header.lines:
            line.draw(self.figure, MARGIN / self.width, 1 - line.down / self.height)
        left = self.width - MARGIN - 2 - BAR if header.bar_is_right else MARGIN + 1
        for x, text, side in (
            (left - 0.5, "0", "right"),
            (left + BAR + 0.5, f"{scale['vmax']:g}", "left"),
        ):
            down = 1 - (header.bar + 0.5) / self.height
            Line(0, text).draw(self.figure, x / self.width, down, ha=side)
        bar = self._axes(left, header.bar, BAR, 0.6, "scale")
        ramp = np.linspace(0, scale["vmax"], 160)[None, :]
        bar.imshow(ramp, extent=(0, BAR, 0.6, 0), aspect="auto", **scale)


def arrange(widths, heights, headers):
    """Return places of panels of these sizes, row by row, in the grid whose page is closest to
    square.

    Args:
        widths, heights: widths and heights of the panels.
        headers: a `Header` for pages that are wide enough for it, and one for others.

    Returns:
        the `Header`, lefts and tops of the panels, and the width and height of the page.
    """

    def grid(columns):
        column_widths = [max(widths[column::columns]) + GAP for column in range(columns)]
        row_heights = [
            ABOVE + max(heights[start : start + columns]) + BELOW
            for start in range(0, len(heights), columns)
        ]
        lefts = list(itertools.accumulate(column_widths, initial=MARGIN))
        width = lefts[-1] - GAP + MARGIN
        wide, narrow = headers
        header = wide if wide.width <= width else narrow
        tops = list(itertools.accumulate(row_heights, initial=header.height))
        return header, lefts, tops, max(header.width, width), tops[-1] + 1

    grids = [grid(columns) for columns in range(1, len(widths) + 1)]
    header, lefts, tops, width, height = min(grids, key=lambda grid: max(grid[3:]))
    columns = len(lefts) - 1
    places = [divmod(index, columns) for index in range(len(widths))]
    lefts, tops = [lefts[column] for _, column in places], [tops[row] for row, _ in places]
    return header, lefts, tops, width, height


class Line(NamedTuple):
    """A line of a header, and how far down its baseline is."""

    down: float
    text: str
    size: float = 8
    colour: str = QUIET

    def draw(self, figure, x, y, **options):
        font = font_of_texts(self.size)
        return figure.text(x, y, self.text, color=self.colour, font=font, **options)


class Header(NamedTuple):
    """The size of a header, its lines, and the top of the scale."""

    width: int
    height: int
    lines: list
    bar: float
    bar_is_right: bool


def wide_header(figure, notes):
    """Return the scale at the right of the heading, all notes in one line."""
    lines = [Line(1.9, HEADING, 12, INK), Line(3.1, "   ·   ".join(notes))]
    heading, note = (_width_of_line(figure, line) for line in lines)
    return Header(2 * MARGIN + max(heading + GAP + BAR + 3, note), 4, lines, 1.3, True)


def narrow_header(figure, notes):
    """Return heading, scale and each note below each other."""
    lines = [Line(1.9, HEADING, 12, INK)]
    lines += [Line(4.5 + row, note) for row, note in enumerate(notes)]
    width = max(BAR + 3, *(_width_of_line(figure, line) for line in lines))
    return Header(2 * MARGIN + width, 4 + len(notes), lines, 2.7, False)


def characters(maps):
    """Return notes on labels that need words."""
    texts = {text for panel in maps for text in (panel.source, panel.target)}
    labels = {label(character) for text in texts if isinstance(text, str) for character in text}
    notes = [f"{SPACE} space"] if SPACE in labels else []
    if any(font_of(text) is None for text in labels):
        notes.append("small digits: a code point without a glyph")
    tokens = {token for text in texts if not isinstance(text, str) for token in text}
    lines = {panel.line for panel in maps}
    return [*notes, *notes_of(map(readable, tokens | lines))]


def exact_width_in_units(text):
    """Return how wide a drawn text is."""
    return text.get_window_extent().width / text.figure.dpi / UNIT_INCHES


def width_in_units(text):
    return math.ceil(exact_width_in_units(text))


def _write_title(figure, title):
    return figure.text(
        0, 0, readable(title), color=INK, va="baseline", parse_math=False, font=font_of_texts(10.5)
    )


def _width_of_line(figure, line):
    text = line.draw(figure, 0, 0)
    width = width_in_units(text)
    text.remove()
    return width
