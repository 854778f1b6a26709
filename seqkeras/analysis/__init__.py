"""Analysis: attention maps of trained models, gradient flow, likelihood of texts."""

from seqkeras.analysis.attention_maps import AttentionMap, maps_of_heads, plot_attention_maps
from seqkeras.analysis.jacobians import jacobian_norms
from seqkeras.analysis.text_likelihood import TextLikelihood

__all__ = [
    "AttentionMap",
    "TextLikelihood",
    "jacobian_norms",
    "maps_of_heads",
    "plot_attention_maps",
]
