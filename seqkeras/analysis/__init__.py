"""Analysis: attention maps of trained models, gradient flow, likelihood of texts, figures of
lectures.

What draws attention is NumPy and matplotlib: it imports no Keras.
"""

import importlib
from typing import TYPE_CHECKING

from seqkeras.analysis.attention_maps import (
    AttentionMap,
    maps_of_heads,
    plot_attention_lines,
    plot_attention_maps,
)
from seqkeras.analysis.jacobians import jacobian_norms

if TYPE_CHECKING:
    from seqkeras.analysis.text_likelihood import TextLikelihood

__all__ = [
    "AttentionMap",
    "TextLikelihood",
    "jacobian_norms",
    "maps_of_heads",
    "plot_attention_lines",
    "plot_attention_maps",
]


def __getattr__(name):
    """Import `TextLikelihood`, which needs Keras, at its first use."""
    if name in ("TextLikelihood", "text_likelihood"):
        module = importlib.import_module("seqkeras.analysis.text_likelihood")
        return module if name == "text_likelihood" else module.TextLikelihood
    raise AttributeError(f"module 'seqkeras.analysis' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "TextLikelihood", "text_likelihood"})
