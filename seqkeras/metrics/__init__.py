"""Metrics of training that leave padding out."""

from seqkeras.metrics.accuracy import SequenceAccuracy, TokenAccuracy
from seqkeras.metrics.perplexity import Perplexity

__all__ = ["Perplexity", "SequenceAccuracy", "TokenAccuracy"]
