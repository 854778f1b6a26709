"""Analysis: attention maps of trained models, and gradient flow."""

from seqkeras.analysis.attention_maps import AttentionMap, maps_of_heads, plot_attention_maps
from seqkeras.analysis.jacobians import jacobian_norms

__all__ = ["AttentionMap", "jacobian_norms", "maps_of_heads", "plot_attention_maps"]
