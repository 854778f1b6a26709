"""Labels of words and other tokens of an attention map: at its left, and upright below it;
of two columns of tokens also at the right.

Text without a font is shown as its script's name, a space as a mark; long tokens are cut.
"""

import math

from seqkeras.analysis.figure_style import INK
from seqkeras.analysis.labels import SPACE, font_of_texts, readable

SIZE, MOST = 9, 24  # points; characters
APART = 0.4  # cells between a label and the map


def shown(token):
    """Return a token in one line of at most `MOST` characters, never empty."""
    text = "".join(SPACE if character.isspace() else character for character in token) or SPACE
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def draw_below(axes, column, row, token):
    """Draw a token below a column, read from bottom to top, its end at the map."""
    _draw(axes, column + 0.5, row + APART, token, rotation=90, ha="center", va="top")


def draw_beside(axes, row, token):
    """Draw a token at the left of a row."""
    _draw(axes, -APART, row + 0.5, token, ha="right", va="center")


def draw_after(axes, row, column, token):
    """Draw a token at the right of a row that ends at a column."""
    _draw(axes, column + APART, row + 0.5, token, ha="left", va="center")


def room(figure, tokens, cell):
    """Return how many whole cells the longest of some tokens needs.

    Args:
        figure: the figure that they will be drawn in.
        tokens: a sequence of strings.
        cell: pixels.
    """
    widths = []
    for token in set(tokens):
        text = _draw(figure, 0, 0, token)
        widths.append(text.get_window_extent().width)
        text.remove()
    return math.ceil(max(widths) / cell + 2 * APART)


def _draw(where, x, y, token, **options):
    return where.text(
        x, y, readable(shown(token)), color=INK, parse_math=False,
        font=font_of_texts(SIZE), **options,
    )  # fmt: skip
