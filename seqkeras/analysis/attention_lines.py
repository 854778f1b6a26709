"""Panels of an attention map as lines between two columns of words.

Reference: Vaswani et al. 2017, figures 3 to 5, https://arxiv.org/abs/1706.03762; Clark et al. 2019,
figures 1 and 5, https://arxiv.org/abs/1906.04341
"""

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap

from seqkeras.analysis import token_labels
from seqkeras.analysis.attention_cells import CHARACTER, draw_before, draw_character
from seqkeras.analysis.attention_page import Extent, Panels
from seqkeras.analysis.labels import label

NEGLIGIBLE = 0.05  # of the largest weight of a map: no line
NARROWEST, WIDEST = 7, 20  # cells between the columns
THIN, THICK = 0.5, 3.0  # points


class Lines(Panels):
    """The target at the left, the source at the right; the darker and thicker, the larger."""

    name = "plot_attention_lines"
    notes = "target left, source right", f"no line: under {NEGLIGIBLE:.0%} of the largest"
    colours = ListedColormap(matplotlib.colormaps["Blues"](np.linspace(0.2, 1, 256)))
    can_be_bare = False
    smallest = "words that can be read"

    @staticmethod
    def extent(panel, room, cell):
        height = max(len(panel.target), len(panel.source))
        width = min(WIDEST, max(NARROWEST, height // 2))
        return Extent(1 + room(panel.target), width, 1 + room(panel.source), height, 0)

    @staticmethod
    def draw(axes, panel, scale, cell):
        axes.spines[:].set(visible=False)
        _, width = axes.get_xlim()
        weights = np.asarray(panel.weights, dtype=float)
        rows, columns = np.nonzero(weights > NEGLIGIBLE * weights.max())
        drawn = weights[rows, columns]
        order = np.argsort(drawn, kind="stable")  # the strongest last, above the others
        ends = np.stack([rows, columns], axis=1)[order] + 0.5
        lines = [((0, left), (width, right)) for left, right in ends]
        strengths = drawn[order] / scale["vmax"]
        axes.add_collection(
            LineCollection(
                lines,
                colors=scale["cmap"](strengths),
                linewidths=THIN + (THICK - THIN) * strengths,
                antialiaseds=True,
            )
        )
        draw_before(axes, panel.target)
        for row, token in enumerate(panel.source):
            if isinstance(panel.source, str):
                draw_character(axes, width + CHARACTER, row + 0.5, label(token))
            else:
                token_labels.draw_after(axes, row, width, token)
