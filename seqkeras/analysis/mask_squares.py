"""Masks of attention as squares, a row for each query: dark where it attends.

Reference: Raffel et al. 2020, figure 3, https://arxiv.org/abs/1910.10683; Yang et al. 2019, figure
1, https://arxiv.org/abs/1906.08237
"""

import numpy as np
from matplotlib.colors import ListedColormap

from seqkeras import masks
from seqkeras.analysis.figure_style import INK, QUIET, RULE, new_figure, write_png

SHORTEST, LONGEST = 5, 24
SEEN, UNSEEN = "#0072B2", "white"


def mask_squares(length=8, seed=0):
    """Return a dictionary: title -> (T, T) booleans, a query a row, a key a column.

    Args:
        length: T.
        seed: of the order of the permutation.

    Raises:
        ValueError: if the length is too small for masks that differ, or too large for labels.
    """
    if not SHORTEST <= length <= LONGEST:
        raise ValueError(
            f"mask_squares: length must be from {SHORTEST} to {LONGEST}; received {length}."
        )
    order = np.random.default_rng(seed).permutation(length)
    real, prefix, radius = length - length // 4, (length + 1) // 3, length // 4
    padding = np.broadcast_to(masks.padding_mask([real], length), (1, length, length))
    causal = masks.causal_mask(length)
    in_order = " ".join(str(position + 1) for position in order)
    squares = {
        f"padding\n{real} real, {length - real} padded": padding,
        "causal\na position and its past": causal,
        f"prefix\n{prefix} both ways, then causal": masks.prefix_mask([prefix], length),
        "causal, of padded rows\nboth at once": masks.combine_masks(padding, causal),
        f"restricted\n{radius} on each side": masks.window_mask(length, radius, radius),
        f"restricted and causal\n{radius} before": masks.window_mask(length, radius, 0),
        f"permutation, content\n{in_order}": masks.permutation_mask(order),
        f"permutation, query\n{in_order}": masks.permutation_mask(order, "query"),
    }
    return {title: np.asarray(mask)[0] for title, mask in squares.items()}


def masks_figure(squares):
    """Return the matplotlib Figure of a dictionary: title -> (T, T) booleans."""
    columns = (len(squares) + 1) // 2
    size = max(8, len(next(iter(squares.values())))) / 8  # of a panel, beside eight positions
    figure = new_figure(2.3 * size * columns, 4.6 * size + 1.1)
    for axes, (title, mask) in zip(figure.subplots(2, columns).flat, squares.items()):
        length = len(mask)
        axes.pcolormesh(mask, cmap=ListedColormap([UNSEEN, SEEN]), edgecolors=RULE, linewidth=0.8)
        axes.set(aspect="equal", xlim=(0, length), ylim=(length, 0))
        places, labels = np.arange(length) + 0.5, range(1, length + 1)
        axes.set_xticks(places, labels)
        axes.set_yticks(places, labels)
        axes.tick_params(colors=QUIET, length=0, labelsize=8)
        axes.spines[:].set_color(QUIET)
        name, detail = title.split("\n")
        axes.set_title(name, loc="left", fontsize=11, color=INK, pad=18)
        axes.annotate(
            detail, (0, 1), xytext=(0, 5), xycoords="axes fraction", textcoords="offset points",
            fontsize=9, color=QUIET,
        )  # fmt: skip
    figure.supxlabel("key", fontsize=10, color=INK)
    figure.supylabel("query", fontsize=10, color=INK)
    return figure


def plot_masks(path, length=8, seed=0):
    """Draw the masks into a PNG file, replaced if it exists; see `mask_squares`."""
    squares = mask_squares(length, seed)
    write_png(lambda: masks_figure(squares), path)
