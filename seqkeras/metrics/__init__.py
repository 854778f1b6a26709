"""Metrics of training that leave padding out, and how well scores rank answers."""

from seqkeras.metrics.accuracy import SequenceAccuracy, TokenAccuracy
from seqkeras.metrics.perplexity import Perplexity
from seqkeras.metrics.risk_coverage import area_under_risk_coverage

__all__ = ["Perplexity", "SequenceAccuracy", "TokenAccuracy", "area_under_risk_coverage"]
