"""Analysis: what a trained model looks at."""

from seqkeras.analysis.attention_maps import AttentionMap, plot_attention_maps

__all__ = ["AttentionMap", "plot_attention_maps"]
