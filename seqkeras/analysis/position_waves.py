"""Sinusoidal positions as heat maps, and the products of positions against their distance.

    P(p) · P(p + k) = sum_i cos(k f_i)

Notation: f_i is the frequency of the i-th sine; the product depends on the distance k alone.

Reference: Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762
"""

import numpy as np

from seqkeras.analysis.figure_style import INK, QUIET, RULE, STYLES, frame, new_figure, write_png

FORMS = {"interleaved": "paper", "joined": "marian"}


def position_vectors(length=100, dim=64):
    """Return a dictionary: name of a form -> (length, dim) vectors of the first positions."""
    from seqkeras.embeddings import SinusoidalPositions

    positions = np.arange(length)
    return {
        name: np.asarray(SinusoidalPositions(dim, form)(positions)) for name, form in FORMS.items()
    }


def products(vectors):
    """Return distances k from -T/2 to T/2, and P(p) · P(p + k) / P(p) · P(p) in the middle p.

    Args:
        vectors: (T, D) of one form.
    """
    middle = len(vectors) // 2
    product = vectors @ vectors[middle]
    return np.arange(len(vectors)) - middle, product / product[middle]


def positions_figure(vectors, others):
    """Return the matplotlib Figure of a dictionary of `position_vectors`.

    Args:
        vectors: the dictionary of the heat maps, whose products are drawn too.
        others: list of (T, D) vectors of other widths, whose products are drawn beside.
    """
    figure = new_figure(11.5, 3.8)
    *maps, panel = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for axes, (name, values) in zip(maps, vectors.items()):
        shades = axes.imshow(values, cmap="cividis", aspect="auto", vmin=-1, vmax=1)
        axes.set_title(f"Sines and cosines {name}", loc="left", fontsize=12, color=INK)
        axes.set_xlabel("dimension", color=INK)
        axes.set_ylabel("position", color=INK)
        axes.tick_params(colors=QUIET)
        axes.spines[:].set_color(RULE)
    figure.colorbar(shades, ax=maps, pad=0.02, aspect=30)
    widths = sorted([next(iter(vectors.values())), *others], key=lambda values: values.shape[1])
    for style, values in zip(STYLES, widths):
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        panel.plot(*products(values), label=f"D = {values.shape[1]}", **line)
    frame(panel, "Products of two positions", "distance k", "P(p) · P(p + k) / P(p) · P(p)")
    panel.grid(color=RULE, linewidth=0.5)
    return figure


def plot_positions(path, length=100, dim=64):
    """Draw the vectors and their products into a PNG file, replaced if it exists.

    Args:
        path: the file.
        length: T, the number of positions.
        dim: D of the heat maps; products are drawn for D / 4, D and 4 D.

    Raises:
        ValueError: if there are too few positions or dimensions.
    """
    if length < 3 or dim < 8:
        raise ValueError(
            "plot_positions: length must be at least 3, and dim at least 8; received "
            f"{length} and {dim}."
        )
    others = [position_vectors(length, width)["interleaved"] for width in (dim // 4, 4 * dim)]
    vectors = position_vectors(length, dim)
    write_png(lambda: positions_figure(vectors, others), path)
