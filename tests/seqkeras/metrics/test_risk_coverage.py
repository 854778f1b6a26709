"""The area under the risk-coverage curve, beside loops straight from its definition."""

import itertools

import numpy as np
import pytest

from seqkeras.metrics import area_under_risk_coverage
from tests.refusals import refusals


def by_loops(order, right):
    """The mean risk of the first k answers of an order, for every k."""
    risks = []
    for k in range(1, len(order) + 1):
        wrong = 0
        for place in order[:k]:
            wrong += not right[place]
        risks.append(wrong / k)
    return sum(risks) / len(risks)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_mean_risk_over_all_coverages(seed):
    random = np.random.default_rng(seed)
    scores, right = random.normal(size=37), random.random(37) < 0.8
    order = sorted(range(37), key=lambda place: -scores[place])
    assert area_under_risk_coverage(scores, right) == pytest.approx(by_loops(order, right))


def test_of_equal_scores_every_order_counts():
    scores, right = [2.0, 1.0, 1.0, 1.0, 0.0, 0.0], [True, False, True, True, False, True]
    orders = [
        (0, *middle, *last)
        for middle in itertools.permutations((1, 2, 3))
        for last in itertools.permutations((4, 5))
    ]
    expected = np.mean([by_loops(order, right) for order in orders])
    assert area_under_risk_coverage(scores, right) == pytest.approx(expected)


SHAPE = "area_under_risk_coverage: ...the same shape (n,), n at least 1; received"
test_what_can_not_be_measured_is_refused = refusals(
    (lambda: area_under_risk_coverage([], []), f"{SHAPE} (0,) and (0,)."),
    (lambda: area_under_risk_coverage([1.0, 2.0], [True]), f"{SHAPE} (2,) and (1,)."),
    (lambda: area_under_risk_coverage([np.nan], [True]), "scores must be numbers; received NaN."),
)
