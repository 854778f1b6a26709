"""Risk against coverage: scores should rank right answers above wrong ones."""

from collections.abc import Iterable

import numpy as np


def area_under_risk_coverage(scores: Iterable[float], right: Iterable[bool]) -> float:
    """Return the AURC: the mean risk over all coverages, when the surest answers are given first.

        risk(k) = wrong answers among the k of highest score / k
        AURC = 1/n sum_{k=1..n} risk(k)

    The AURC is 0 where no answer is wrong. Where a share e is wrong, it is e for scores that say
    nothing, and about e + (1 - e) log(1 - e) for scores that rank every right answer above every
    wrong one. Equal scores may come in any order: the mean over all orders counts.

    Args:
        scores: (n,) numbers, the higher the surer.
        right: (n,) booleans, whether the answers are right.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no answer, a score is NaN, or scores and right differ in number.

    Reference: Geifman and El-Yaniv 2017, https://arxiv.org/abs/1705.08500 (risk and coverage);
    Geifman et al. 2019, section 2, https://arxiv.org/abs/1805.08206 (the area)

    Example:
        >>> from seqkeras.metrics import area_under_risk_coverage
        >>> area_under_risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, True, False])
        0.0625
        >>> area_under_risk_coverage([0.6, 0.8, 0.7, 0.9], [True, True, True, False])
        0.5208333333333333
    """
    scores, right = np.asarray(scores, "float64"), np.asarray(right, bool)
    if scores.ndim != 1 or scores.shape != right.shape or not scores.size:
        raise ValueError(
            "area_under_risk_coverage: scores and right must have the same shape (n,), n at least "
            f"1; received {scores.shape} and {right.shape}."
        )
    if np.isnan(scores).any():
        raise ValueError("area_under_risk_coverage: scores must be numbers; received NaN.")
    _, group, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    wrong = np.bincount(group, weights=~right) / counts  # the share of each score's answers
    expected = np.cumsum(np.repeat(wrong, counts))
    return float(np.mean(expected / np.arange(1, scores.size + 1)))
