"""Attention: scores -> weights -> context."""

from seqkeras.attention.attention import Attention
from seqkeras.attention.scores import AdditiveScore

__all__ = ["AdditiveScore", "Attention"]
