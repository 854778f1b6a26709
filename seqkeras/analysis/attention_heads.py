"""The attention of one word between two columns of words: a colour and a bar for each head.

The thicker a line and the longer a bar, the larger the weight.

Reference: Vaswani et al. 2017, figures 3 to 5, https://arxiv.org/abs/1706.03762
"""

from dataclasses import dataclass

import numpy as np

from seqkeras.analysis.figure_style import INK, QUIET, RULE, STYLES, new_figure, write_png
from seqkeras.analysis.labels import readable

ENGLISH = "the dog did not cross the street because it was too tired"
CHINESE = "狗 没有 过 街 因为 它 太 宽 了"
LEAST = 0.03  # of a weight that is drawn
THICKEST = 4.5  # points
LEFT, RIGHT, BARS, BAR = 2.2, 5.0, 7.4, 0.8  # places of the columns; the longest bar


@dataclass(frozen=True, eq=False)
class HeadsOfWord:
    """What one word attends to, in one layer.

    Attributes:
        words: (T,) words.
        row: index of the word.
        weights: (N, T) weights of each head.
        title: text above the panel.
    """

    words: list
    row: int
    weights: np.ndarray
    title: str


def heads_of_word(model, text):
    """Return a list of `HeadsOfWord`, for "it" in a text, one for each layer.

    Args:
        model: see `seqkeras.analysis.antecedents`.
        text: a sentence of its grammar, with spaces between the words.
    """
    from keras import ops

    from seqkeras.analysis import antecedents

    words, index = antecedents.read(text)
    token_ids, lengths = antecedents.encode([words])
    inputs = {"token_ids": token_ids, "lengths": lengths}
    logits = ops.convert_to_numpy(model(inputs)["word"])[0, index]
    answer = antecedents.vocabulary()[int(np.argmax(logits))]
    weights = ops.convert_to_numpy(model.attention_weights(inputs)["encoder"])[0]
    return [
        HeadsOfWord(
            words,
            index,
            heads[:, index],
            f"layer {layer}: {words[index]} → {answer}",
        )
        for layer, heads in enumerate(weights, 1)
    ]


def heads_figure(rows):
    """Return the matplotlib Figure of lists of `HeadsOfWord`, a list a row."""
    heights = [len(row[0].words) + 2 for row in rows]
    figure = new_figure(5.6 * len(rows[0]), 0.27 * sum(heights) + 0.4)
    grid = figure.subplots(len(rows), len(rows[0]), squeeze=False, height_ratios=heights)
    for row, line in zip(rows, grid):
        for panel, axes in zip(row, line):
            draw_panel(axes, panel)
    return figure


def draw_panel(axes, panel):
    """Draw a `HeadsOfWord` into the axes of a figure."""
    count = len(panel.weights)
    for row, word in enumerate(panel.words):
        chosen = row == panel.row
        box = {"facecolor": RULE if chosen else "white", "edgecolor": "none", "pad": 2}
        for x, side, column in ((LEFT, "right", "left"), (RIGHT, "left", "right")):
            axes.text(
                x, row, readable(word), ha=side, va="center", color=INK, fontsize=10.5,
                parse_math=False, bbox=box if column == "left" else None,
            )  # fmt: skip
    for head, (weights, style) in enumerate(zip(panel.weights, STYLES)):
        shift = 0.14 * (head - (count - 1) / 2)  # so that no head covers another
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        left = BARS + head * (BAR + 0.25)
        for row, weight in enumerate(weights):
            if weight >= LEAST:
                ends = (LEFT + 0.15, RIGHT - 0.15), (panel.row + shift, row + shift)
                axes.plot(*ends, linewidth=0.4 + THICKEST * weight, alpha=0.85, **line)
            axes.barh(row, BAR, 0.66, left, color="white", edgecolor=RULE, linewidth=0.6)
            axes.barh(row, BAR * weight, 0.66, left, color=style["color"])
        axes.text(left + BAR / 2, -0.9, f"{head + 1}", ha="center", va="center", color=QUIET)
    axes.set(xlim=(0, BARS + count * (BAR + 0.25)), ylim=(len(panel.words) - 0.4, -1.4))
    axes.set_axis_off()
    axes.set_title(readable(panel.title), loc="left", fontsize=12, color=INK, parse_math=False)


def plot_heads(path, english=ENGLISH, chinese=CHINESE, steps=200, seed=1):
    """Train the small encoder, and draw what "it" attends to, for each layer, into a PNG file.

    Args:
        path: the file, replaced if it exists.
        english, chinese: sentences of the grammar.
        steps, seed: of the training.

    Raises:
        ValueError: if a sentence is not of the grammar.
    """
    from seqkeras.analysis import antecedents

    for text in (english, chinese):
        antecedents.read(text)
    model = antecedents.train(steps, seed)
    rows = [heads_of_word(model, text) for text in (english, chinese)]
    write_png(lambda: heads_figure(rows), path)
