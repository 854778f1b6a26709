"""Metrics: of training, without padding; of answers against targets; of the ranking by scores."""

from seqkeras.metrics.accuracy import SequenceAccuracy, TokenAccuracy
from seqkeras.metrics.calibration import (
    expected_calibration_error,
    fitted_temperature,
    reliability,
)
from seqkeras.metrics.classes import class_f1, class_scores, matthews_correlation
from seqkeras.metrics.correlation import pearson_correlation, spearman_correlation
from seqkeras.metrics.error_rates import sequence_error_rate, token_error_rate
from seqkeras.metrics.forecast import (
    coverage,
    mean_absolute_error,
    naive_error,
    pinball_loss,
    relative_error,
    root_mean_squared_error,
)
from seqkeras.metrics.pairs import exact_match
from seqkeras.metrics.perplexity import Perplexity
from seqkeras.metrics.risk_coverage import area_under_risk_coverage
from seqkeras.metrics.rouge import rouge
from seqkeras.metrics.squad import (
    best_no_answer_threshold,
    squad_exact_match,
    squad_f1,
    squad_scores,
)
from seqkeras.metrics.tagging import entity_f1, entity_scores, tag_accuracy
from seqkeras.metrics.texts import bleu, chrf, signed_bleu, signed_chrf

__all__ = [
    "Perplexity",
    "SequenceAccuracy",
    "TokenAccuracy",
    "area_under_risk_coverage",
    "best_no_answer_threshold",
    "bleu",
    "chrf",
    "class_f1",
    "class_scores",
    "coverage",
    "entity_f1",
    "entity_scores",
    "exact_match",
    "expected_calibration_error",
    "fitted_temperature",
    "matthews_correlation",
    "mean_absolute_error",
    "naive_error",
    "pearson_correlation",
    "pinball_loss",
    "relative_error",
    "reliability",
    "root_mean_squared_error",
    "rouge",
    "sequence_error_rate",
    "signed_bleu",
    "signed_chrf",
    "spearman_correlation",
    "squad_exact_match",
    "squad_f1",
    "squad_scores",
    "tag_accuracy",
    "token_error_rate",
]
