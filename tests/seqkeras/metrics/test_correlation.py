"""Correlations of numbers, beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

from seqkeras.metrics import pearson_correlation, spearman_correlation

METRICS = [
    (pearson_correlation, scipy.stats.pearsonr),
    (spearman_correlation, scipy.stats.spearmanr),
]


@pytest.mark.parametrize(("ours", "theirs"), METRICS)
def test_it_is_scipys_on_hundreds_of_random_cases_with_ties(ours, theirs):
    draw = np.random.default_rng(0)
    for _ in range(300):
        size = int(draw.integers(3, 41))
        targets = draw.integers(0, 6, size) / 2
        answers = targets * draw.normal() + draw.normal(size=size).round(1) * 10 ** draw.integers(3)
        if np.ptp(targets) and np.ptp(answers):
            expected = theirs(answers, targets).statistic
            assert ours(answers.tolist(), targets.tolist()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), METRICS)
def test_numbers_that_are_all_equal_correlate_with_nothing(ours, theirs):
    assert ours([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) == ours([1, 2, 3], [5, 5, 5]) == 0.0
    assert ours([1e-200, 2e-200, 3e-200], [3, 2, 1]) == pytest.approx(-1)
