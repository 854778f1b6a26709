"""Calibration: of answers with a score of 0.9, nine of ten should be right."""

from collections.abc import Iterable

import numpy as np

BINS = 15
STEPS = 60  # of a bisection, each of which halves the interval
SHARPEST = 20.0  # the largest factor of logits


def reliability(scores: Iterable[float], right: Iterable[bool], bins: int = BINS) -> np.ndarray:
    """Return (bins, 3) counts, mean scores and shares of right answers of scores in equal bins.

    Bin m holds the scores in ((m - 1) / bins, m / bins], the first one 0 too; an empty bin has
    zeros.

    Args:
        scores: (n,) numbers from 0 to 1.
        right: (n,) booleans, whether the answers are right.
        bins: M, the number of bins.

    Returns:
        (bins, 3) float64.

    Raises:
        ValueError: if there is no answer, scores and right differ in number, or a score is not from
            0 to 1.

    Reference: Guo et al. 2017, section 2, https://arxiv.org/abs/1706.04599

    Example:
        >>> from seqkeras.metrics import reliability
        >>> scores, right = [0.5, 0.75, 1.0], [False, True, True]
        >>> reliability(scores, right, bins=2).tolist()  # count, mean score, share of right answers
        [[1.0, 0.5, 0.0], [2.0, 0.875, 1.0]]
    """
    scores, right = np.asarray(scores, "float64"), np.asarray(right, bool)
    if scores.ndim != 1 or scores.shape != right.shape or not scores.size:
        raise ValueError(
            "reliability: scores and right must have the same shape (n,), n at least 1; received "
            f"{scores.shape} and {right.shape}."
        )
    if not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError(f"reliability: scores must be from 0 to 1; received {scores}.")
    places = np.maximum(np.ceil(scores * bins).astype(int) - 1, 0)
    counts, *sums = (np.bincount(places, values, bins) for values in (None, scores, right))
    return np.stack([counts, *(total / np.maximum(counts, 1) for total in sums)], axis=1)


def expected_calibration_error(
    scores: Iterable[float], right: Iterable[bool], bins: int = BINS
) -> float:
    """Return the ECE: how far the scores of a bin are from its share of right answers, on average.

        ECE = sum_m |B_m| / n |accuracy(B_m) - confidence(B_m)|

    Args:
        scores, right, bins: see `reliability`.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: see `reliability`.

    Reference: Guo et al. 2017, section 2, equation 3, https://arxiv.org/abs/1706.04599

    Example:
        >>> from seqkeras.metrics import expected_calibration_error
        >>> scores, right = [0.75, 0.75, 0.75, 0.75], [True, True, True, False]
        >>> expected_calibration_error(scores, right)
        0.0
        >>> expected_calibration_error(scores, [True, False, False, False])
        0.5
    """
    counts, confidence, accuracy = reliability(scores, right, bins).T
    return float(np.sum(counts * np.abs(accuracy - confidence)) / np.sum(counts))


def log_softmax(
    logits: np.ndarray, temperature: float = 1.0, counts: np.ndarray | float = 1.0
) -> np.ndarray:
    """Return log softmax(logits / T) over the last axis, in float64; a logit that stands for
    `counts` classes has the probability of all of them."""
    z = np.asarray(logits, "float64") / temperature + np.log(counts)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def fitted_temperature(
    logits: np.ndarray, targets: np.ndarray, counts: np.ndarray | None = None
) -> float:
    """Return the temperature T that makes targets most likely.

        T = argmin - 1/n sum_i sum_k q_ik log softmax(z_i / T)_k
        q_ik = (n + 1) / (n + 2) for the target, the rest is shared by the other classes

    The loss is convex in 1 / T, whose best value is found by bisection of its derivative; it is
    from 1 / 20 to 20. Platt's q instead of the paper's q of 1 and 0 keeps rows that are all right
    from scores of 1.

    Args:
        logits: (n, K) numbers z; log-probabilities are logits too. Where a logit is -inf, the row
            lacks the class, and K is the number of the others.
        targets: (n,) integers, indices of the right classes.
        counts: (n, K) numbers: how many classes share a logit, 1 at each target. None: 1 for all.

    Returns:
        T, from 1 / 20 to 20; above 1 where the logits are too sure.

    Raises:
        ValueError: if there is no row, or fewer than two classes.

    Reference: Guo et al. 2017, section 4.2, https://arxiv.org/abs/1706.04599; q: Platt 1999,
    section 2.2 ("Probabilistic outputs for support vector machines")

    Example:
        >>> import numpy as np
        >>> from seqkeras.metrics import fitted_temperature
        >>> logits = np.tile([[4.0, 0.0]], (40, 1))  # sure of the first class,
        >>> targets = [0] * 30 + [1] * 10  # which is right in 3 of 4 rows
        >>> round(fitted_temperature(logits, targets), 2)
        3.86
    """
    z, targets = np.asarray(logits, "float64"), np.asarray(targets)
    if z.ndim != 2 or z.shape[1] < 2 or z.shape[:1] != targets.shape or not len(z):
        raise ValueError(
            "fitted_temperature: logits must have shape (n, K) and targets (n,), n from 1, K from "
            f"2; received {z.shape} and {targets.shape}."
        )
    n, there = len(z), np.isfinite(z)
    counts = np.ones(z.shape) if counts is None else counts
    others = np.where(there, counts, 0).sum(axis=1, keepdims=True) - 1
    q = np.where(there, counts / (n + 2) / np.maximum(others, 1), 0.0)
    q[np.arange(n), targets] = (n + 1) / (n + 2)
    low, high = -np.log(SHARPEST), np.log(SHARPEST)  # of log 1 / T
    for _ in range(STEPS):
        middle = (low + high) / 2
        expected = np.exp(log_softmax(z, np.exp(-middle), counts))
        if np.sum((expected - q) * np.where(there, z, 0)) > 0:  # the derivative by 1 / T
            high = middle
        else:
            low = middle
    return float(np.exp(-(low + high) / 2))
