"""Attention maps: which source characters the model reads as it writes each target character.

One PNG, one panel per example: source characters across, in the order in which a reader sees them
(an Arabic or Hebrew sentence begins at the right), target characters down, the darker the cell the
larger the weight. Nothing is taken from the system: the fonts are DejaVu Sans, which comes with
matplotlib, and Noto Sans CJK, from notojp-matplotlib.

Left out: a Devanagari, Thai or other font that neither package has (such a cell shows its code
point), Chinese variants of shared Han characters (Noto's Japanese ones are drawn), embeddings,
isolates and paired brackets in mixed-direction text, and breaking a long source into lines.
"""

import functools
import importlib.metadata
import itertools
import math
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import arabic_reshaper
import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, get_font

# Every length below is in cells, so that columns, labels and margins fall on whole pixels.
CELL_INCHES, DPI = 0.2, 160
MARGIN, GAP, HEADER, HEADER_WIDTH, ABOVE, BELOW, LEFT = 2, 3, 4, 33, 2, 2.5, 1

INK, QUIET, RULE = "#1f2328", "#6e7781", "#d0d7de"
COLOUR_MAP = "Blues"  # one hue, light to dark: the order survives every kind of colour blindness

SPACE, DOTTED_CIRCLE, ZERO_WIDTH_JOINER, TATWEEL = "␣", "\u25cc", "\u200d", "\u0640"
RIGHT_TO_LEFT_MARK = "\u200f"
MIRRORED = dict(zip("()[]{}<>«»", ")(][}{><»«", strict=True))
RESHAPER = arabic_reshaper.ArabicReshaper(
    {"support_ligatures": False, "delete_harakat": False, "support_zwj": False}
)


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """One example: two strings, and where each target character looked.

    Args:
        source: the text that was read, S characters (code points).
        target: the text that was written, T characters.
        weights: (T, S) attention weights; every row sums to one.
        title: the line above the panel; the source itself by default.

    Raises:
        ValueError: if a text is empty, or weights are no (T, S) array of such rows.
    """

    source: str
    target: str
    weights: np.ndarray
    title: str | None = None

    def __post_init__(self):
        for name in ("source", "target"):
            if not (text := getattr(self, name)):
                raise ValueError(
                    f"AttentionMap: {name} must hold at least one character; received {text!r}."
                )
        expected = (len(self.target), len(self.source))
        if np.shape(self.weights) != expected:
            raise ValueError(
                f"AttentionMap: weights must have shape (len(target), len(source)) = {expected}; "
                f"received {np.shape(self.weights)}."
            )
        weights = np.asarray(self.weights, dtype=float)
        sums = weights.sum(axis=1)
        wrong = ~(np.abs(sums - 1) < 1e-2)  # also true of NaN; bfloat16 errs by some 0.004
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


def plot_attention_maps(maps, path):
    """Draw attention maps, one panel each, into one PNG file.

    Args:
        maps: a sequence of AttentionMap, drawn row by row in this order.
        path: the file to write, replaced if it exists; its folder must exist.

    Raises:
        ValueError: if maps is empty.
    """
    attention_figure(maps).canvas.print_png(path)  # savefig would heed the user's rcParams


def attention_figure(maps):
    """The matplotlib Figure of `plot_attention_maps`; the axes "map 0", "map 1", ... are panels."""
    maps = list(maps)
    if not maps:
        raise ValueError("plot_attention_maps: maps must hold at least one map; received none.")
    figure = Figure(dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    texts = [each.source if each.title is None else each.title for each in maps]
    titles = [draw_title(figure, text) for text in texts]
    widths = [
        LEFT + max(len(each.source), width_in_cells(title))
        for each, title in zip(maps, titles, strict=True)
    ]
    lefts, tops, width, height = arrange(widths, [len(each.target) for each in maps])
    figure.set_size_inches(width * CELL_INCHES, height * CELL_INCHES)

    largest = max(float(np.max(each.weights)) for each in maps)
    scale = {"vmin": 0.0, "vmax": min(1.0, math.ceil(10 * largest - 1e-6) / 10)}
    scale["cmap"] = COLOUR_MAP
    notes = set()
    for index, (each, title) in enumerate(zip(maps, titles, strict=True)):
        left, top = lefts[index] + LEFT, tops[index] + ABOVE
        axes = add_axes(figure, left, top, len(each.source), len(each.target), f"map {index}")
        notes |= draw_map(axes, each, scale)
        if reads_right_to_left(texts[index]):
            title.set_horizontalalignment("right")
            left += max(len(each.source), width_in_cells(title))
        title.set_position((left / width, 1 - (top - 0.6) / height))
    draw_header(figure, scale, notes)
    return figure


def arrange(widths, heights):
    """Where panels of these sizes go: a grid, row by row, that makes the page nearest to square.

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


def draw_map(axes, each, scale):
    """Draw one panel; return the kinds of labels that the header has to explain."""
    order = visual_order(each.source)
    weights = np.asarray(each.weights, dtype=float)[:, order]
    axes.pcolormesh(weights, edgecolors="white", linewidth=0.5, **scale)
    across = source_labels(each.source)
    kinds = {
        draw_label(axes, column + 0.5, len(each.target) + 1.0, across[index])
        for column, index in enumerate(order)
    }
    return kinds | {
        draw_label(axes, -0.75, row + 0.5, label(character))
        for row, character in enumerate(each.target)
    }


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
    font = max(fonts(), key=lambda font: sum(has_glyph(font, each) for each in title))
    mark = RIGHT_TO_LEFT_MARK if reads_right_to_left(title) else ""
    return figure.text(
        0, 0, mark + readable(title, font), color=INK, va="baseline", parse_math=False,
        font=FontProperties(fname=font, size=10.5),
    )  # fmt: skip


def draw_header(figure, scale, kinds):
    """Say once, for all panels, how to read them, and which colour is which weight."""
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


# Characters and fonts


@functools.cache
def fonts():
    """The font files that labels use, the preferred one first."""
    # Found by its metadata: importing notojp_matplotlib would change matplotlib's default font.
    noto = importlib.metadata.distribution("notojp-matplotlib").locate_file(
        "notojp_matplotlib/fonts/NotoSansCJKjp-Regular.otf"
    )
    return str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf")), str(noto)


def monospace():
    return str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSansMono.ttf"))


@functools.cache
def cmap(font):
    """The code points that a font file has glyphs for."""
    return frozenset(get_font(font).get_charmap())


def has_glyph(font, character):
    return ord(character) in cmap(font) and unicodedata.category(character) != "Cc"


def has_ink(font, character):
    """Whether the glyph leaves a mark: no space, no control character, no filler does."""
    if unicodedata.category(character)[0] in "ZC" or not has_glyph(font, character):
        return False
    left, bottom, right, top = get_font(font).load_char(ord(character)).bbox
    return right > left and top > bottom


def font_of(text):
    """The first font with a visible glyph for every character of text, or None."""
    return next((font for font in fonts() if all(has_ink(font, each) for each in text)), None)


def code_point(character):
    digits = f"{ord(character):04X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def label(character):
    """What stands for a character that is shown alone: a mark gets a dotted circle to sit on."""
    if character == " ":
        return SPACE
    return DOTTED_CIRCLE + character if unicodedata.category(character)[0] == "M" else character


def source_labels(source):
    """The label of every source character: Arabic letters as in their word, brackets turned."""
    joined = RESHAPER.reshape(source.replace(ZERO_WIDTH_JOINER, TATWEEL))
    labels = []
    for character, form, level in zip(source, joined, bidi_levels(source), strict=True):
        if character != ZERO_WIDTH_JOINER and font_of(form):
            character = form  # DejaVu lacks some joined forms of letters that it has alone
        labels.append(label(MIRRORED.get(character, character) if level % 2 else character))
    return labels


def readable(text, font):
    """Text for one line: what the font lacks becomes its script's name, as in "3 [Devanagari]"."""
    parts = []
    for covered, run in itertools.groupby(text, lambda character: has_glyph(font, character)):
        for script, characters in itertools.groupby(run, None if covered else script_of):
            parts.append("".join(characters) if covered else script)
    return "".join(parts)


def script_of(character):
    category = unicodedata.category(character)
    if category[0] in "ZC":
        return " " if category[0] == "Z" or category == "Cc" else ""
    if category[0] in "LM":
        return f"[{unicodedata.name(character, 'unknown').split()[0].capitalize()}]"
    return f"[U+{ord(character):04X}]"


# Order on the line


def reads_right_to_left(text):
    """Whether Arabic and Hebrew characters are at least half: "ar|" in front changes nothing."""
    directions = [unicodedata.bidirectional(character) for character in text]
    right_to_left = sum(directions.count(each) for each in ("R", "AL", "AN"))
    return right_to_left > 0 and right_to_left >= directions.count("L")


def visual_order(text):
    """The indices of the characters from left to right, as a reader sees them: UAX #9, rule L2.

    From the highest level down, every run at that level or above is turned round.
    """
    levels = bidi_levels(text)
    order = list(range(len(text)))
    for level in range(max(levels), 0, -1):
        turned = []
        for high, run in itertools.groupby(order, [each >= level for each in levels].__getitem__):
            run = list(run)
            turned += run[::-1] if high else run
        order = turned
    return order


def bidi_levels(text):
    """The embedding level of every character (odd: right to left), rules W1 to L1 of UAX #9.

    Reference: https://www.unicode.org/reports/tr9/ ; explicit embeddings and isolates (X1 to X10)
    and paired brackets (N0) are treated as ordinary neutral characters.
    """
    base = int(reads_right_to_left(text))
    start = "R" if base else "L"
    original = [unicodedata.bidirectional(character) or "L" for character in text]
    types = resolve_neutrals(resolve_weak(original, start), start)
    rise = {"L": base, "R": 1 - base, "EN": 2 - base, "AN": 2 - base}  # I1, I2
    levels = [base + rise[each] for each in types]
    for index in reversed(range(len(text))):  # L1: white space at the end stays at the end
        if original[index] not in ("WS", "S", "B"):
            break
        levels[index] = base
    return levels


def resolve_weak(types, start):
    """Rules W1 to W7: marks, numbers and their separators take the direction of what is near."""
    types = list(types)
    previous = strong = start
    for index, each in enumerate(types):
        previous = previous if each == "NSM" else each  # W1
        strong = previous if previous in ("L", "R", "AL") else strong
        types[index] = "AN" if previous == "EN" and strong == "AL" else previous  # W2
    types = ["R" if each == "AL" else each for each in types]  # W3
    for index in range(1, len(types) - 1):  # W4
        before, each, after = types[index - 1 : index + 2]
        if before == after and (each, before) in (("ES", "EN"), ("CS", "EN"), ("CS", "AN")):
            types[index] = before
    for steps in (range(1, len(types)), range(len(types) - 2, -1, -1)):  # W5
        for index in steps:
            if types[index] == "ET" and types[index - steps.step] == "EN":
                types[index] = "EN"
    strong = start
    for index, each in enumerate(types):
        strong = each if each in ("L", "R") else strong
        if each in ("ES", "ET", "CS"):  # W6
            types[index] = "ON"
        if each == "EN" and strong == "L":  # W7
            types[index] = "L"
    return types


def resolve_neutrals(types, start):
    """Rules N1 and N2: neutrals between two like directions take it, others that of the line."""
    sides = [{"L": "L", "R": "R", "EN": "R", "AN": "R"}.get(each) for each in types]
    resolved = []
    for neutral, run in itertools.groupby(range(len(types)), lambda index: sides[index] is None):
        run = list(run)
        before = sides[run[0] - 1] if run[0] > 0 else start
        after = sides[run[-1] + 1] if run[-1] + 1 < len(types) else start
        direction = before if before == after else start
        resolved += [direction if neutral else types[index] for index in run]
    return resolved
