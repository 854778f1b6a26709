"""Attention maps: which characters or words of the source a model attends to for each of the
target.

One PNG, one panel per example or per head. As cells: the source across, in the order in which a
reader sees it (an Arabic or Hebrew sentence begins at the right), the target down, the darker the
cell the larger the weight; of many or large maps the cells shrink, and then have no labels. As
lines: see `attention_lines.py`.

Not supported: line breaks in a long source; `labels.py` lists scripts without a font.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqkeras.analysis.attention_cells import Cells
from seqkeras.analysis.attention_lines import Lines
from seqkeras.analysis.attention_page import page_figure
from seqkeras.analysis.figure_style import require_png
from seqkeras.serving.text.encoding import Encoding, of_words


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

    Example:
        >>> from seqkeras.analysis import AttentionMap
        >>> AttentionMap(["guten", "Tag"], ["good", "day"], [[0.9, 0.1], [0.2, 0.8]]).line
        'guten Tag'
        >>> AttentionMap("ab", "xy", [[2.0, -1.0], [1.0, 3.0]])  # scores before softmax
        Traceback (most recent call last):
            ...
        ValueError: AttentionMap: every row of weights must sum to 1; received 4 in row 1...
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


def maps_of_heads(
    weights: np.ndarray,
    source: Any,
    target: Any = None,
    layer: int | None = None,
    head: int | str | None = None,
) -> list[AttentionMap]:
    """Return an `AttentionMap` for each head of each layer.

    Args:
        weights: (L, N, T, S) of one example, such as
            `model.attention_weights(inputs)["cross"][row]`; or (T, S) without layers and heads,
            which a bundle's answer has. Rows and columns after the texts are padding, and left out.
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

    Reference: words: Clark et al. 2019, section 4.1, https://arxiv.org/abs/1906.04341

    Example:
        >>> import numpy as np
        >>> from seqkeras.analysis import maps_of_heads
        >>> weights = np.full((2, 3, 4, 4), 0.25)  # 2 layers of 3 heads, 4 tokens
        >>> maps = maps_of_heads(weights, ["a", "model", "reads", "."], layer=1)
        >>> [one.title for one in maps]
        ['layer 1, head 0', 'layer 1, head 1', 'layer 1, head 2']
    """
    weights = np.asarray(weights, dtype=float)
    target = source if target is None else target
    if weights.ndim not in (2, 4):
        raise ValueError(
            "maps_of_heads: weights must have shape (layers, heads, target, source) or (target, "
            f"source), weights of one example; received {weights.shape}."
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
            weights[index].mean(axis=0) if means else weights[index, number],
            f"layer {index}, {'mean of heads' if means else f'head {number}'}",
        )
        for index in layers
        for number in heads
    ]


def _labels(text):
    """Return the labels of a text, and the number of tokens of each."""
    if isinstance(text, Encoding):
        return zip(*text.words(), strict=True)
    return text, [1] * len(text)


def _chosen(name, number, count):
    """Return the selected indices, of `count`."""
    if number is None:
        return range(count)
    if type(number) is not int or not 0 <= number < count:
        ways = ', "mean"' if name == "head" else ""
        raise ValueError(
            f"maps_of_heads: {name} must be from 0 to {count - 1}{ways} or None for all; "
            f"received {number!r}."
        )
    return [number]


def plot_attention_maps(maps: AttentionMap | Sequence[AttentionMap], path: Path | str) -> None:
    """Draw attention maps as cells, one panel each, into one PNG file.

    Args:
        maps: an AttentionMap, or a sequence of them, drawn row by row in this order.
        path: the file to write, a .png, replaced if it exists; its folder must exist.

    Raises:
        ValueError: if maps is empty or too much for a picture, or path does not end in .png.
        OSError: if path can not be written.

    Example:
        >>> import pathlib
        >>> from seqkeras.analysis import AttentionMap, plot_attention_maps
        >>> plot_attention_maps(AttentionMap("ab", "xyz", [[1, 0], [0.5, 0.5], [0, 1]]), "maps.png")
        >>> pathlib.Path("maps.png").read_bytes()[1:4]
        b'PNG'
    """
    _write(Cells, maps, path)


def plot_attention_lines(maps: AttentionMap | Sequence[AttentionMap], path: Path | str) -> None:
    """Draw attention maps as lines between two columns of words, one panel each, into one PNG file.

    The words of the target are at the left, the words of the source at the right. The larger a
    weight, the darker and thicker its line; weights under 5 % of the largest of their map have
    none.

    Args:
        maps, path: see `plot_attention_maps`.

    Raises:
        ValueError: if maps is empty or too much for a picture, or path does not end in .png.
        OSError: if path can not be written.

    Reference: Vaswani et al. 2017, figures 3 to 5, https://arxiv.org/abs/1706.03762; Clark et al.
    2019, figures 1 and 5, https://arxiv.org/abs/1906.04341

    Example:
        >>> import pathlib
        >>> from seqkeras.analysis import AttentionMap, plot_attention_lines
        >>> words = ["the", "cat"]
        >>> plot_attention_lines(AttentionMap(words, words, [[1, 0], [0.3, 0.7]]), "lines.png")
        >>> pathlib.Path("lines.png").read_bytes()[1:4]
        b'PNG'
    """
    _write(Lines, maps, path)


def attention_figure(maps):
    """Return the matplotlib Figure of `plot_attention_maps`; the axes "map 0", "map 1", ... are
    panels."""
    return page_figure(maps, Cells)


def lines_figure(maps):
    """Return the matplotlib Figure of `plot_attention_lines`, in the same form."""
    return page_figure(maps, Lines)


def _write(panels, maps, path):
    """Write the page of maps, once it is known that the file can be written."""
    require_png(panels.name, path)
    page_figure(maps, panels).canvas.print_png(path)  # savefig would apply the user's rcParams
