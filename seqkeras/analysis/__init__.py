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

if TYPE_CHECKING:
    from seqkeras.analysis.jacobians import jacobian_norms
    from seqkeras.analysis.text_likelihood import TextLikelihood

__all__ = [
    "AttentionMap",
    "TextLikelihood",
    "jacobian_norms",
    "maps_of_heads",
    "plot_attention_lines",
    "plot_attention_maps",
]


_NEED_KERAS = {"TextLikelihood": "text_likelihood", "jacobian_norms": "jacobians"}


def __getattr__(name):
    """Import what needs Keras at its first use: a public name, or its module."""
    if name in _NEED_KERAS.values():
        return importlib.import_module(f"seqkeras.analysis.{name}")
    if name in _NEED_KERAS:
        return getattr(importlib.import_module(f"seqkeras.analysis.{_NEED_KERAS[name]}"), name)
    raise AttributeError(f"module 'seqkeras.analysis' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_NEED_KERAS, *_NEED_KERAS.values()})
