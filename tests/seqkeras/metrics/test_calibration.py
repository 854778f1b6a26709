"""Calibration against loops, and against other libraries' ways to the same numbers."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

from seqkeras.metrics import expected_calibration_error, fitted_temperature, reliability
from seqkeras.metrics.calibration import log_softmax
from tests.refusals import refusals

N, K = 307, 5


def drawn(temperature, seed=0, n=N):
    """Logits whose targets are drawn at a temperature."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3, size=(n, K))
    targets = (logits / temperature + random.gumbel(size=(n, K))).argmax(axis=1)
    return logits, targets


def test_the_calibration_error_is_the_papers_formula():
    random = np.random.default_rng(1)
    scores = np.concatenate([random.random(N), [0.0, 1.0, 1 / 15, 2 / 15]])
    right = random.random(len(scores)) < scores**2
    expected = 0.0
    for m in range(1, 16):
        rows = [
            place
            for place, score in enumerate(scores)
            if (m - 1) / 15 < score <= m / 15 or (m == 1 and score == 0)
        ]
        if rows:
            accuracy = sum(right[row] for row in rows) / len(rows)
            confidence = sum(scores[row] for row in rows) / len(rows)
            expected += len(rows) / len(scores) * abs(accuracy - confidence)
    assert expected_calibration_error(scores, right) == pytest.approx(expected, abs=1e-12)


def test_bins_hold_counts_mean_scores_and_shares():
    rows = reliability([0.1, 0.15, 0.9], [True, False, True], bins=5)
    np.testing.assert_allclose(rows, [[2, 0.125, 0.5], *[[0, 0, 0]] * 3, [1, 0.9, 1]])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_is_the_one_that_scipy_finds(temperature):
    logits, targets = drawn(temperature)
    q = np.full((N, K), 1 / (N + 2) / (K - 1))
    q[np.arange(N), targets] = (N + 1) / (N + 2)

    def loss(log_temperature):
        return -np.mean(np.sum(q * log_softmax(logits, np.exp(log_temperature)), axis=1))

    best = minimize_scalar(loss, bounds=(-2, 2), method="bounded", options={"xatol": 1e-9})
    found = fitted_temperature(logits, targets)
    assert found == pytest.approx(np.exp(best.x), rel=1e-5)
    assert found == pytest.approx(temperature, rel=0.15)


def test_the_temperature_of_two_classes_is_platts_scaling_without_offset():
    """Many rows, so that Platt's q is close to 1: logistic regression without penalty."""
    logits, targets = drawn(1.7, n=20_011)
    two = targets < 2
    logits, targets = logits[two][:, :2], targets[two]
    margin = (logits[:, 1] - logits[:, 0])[:, None]
    model = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-10).fit(margin, targets)
    assert fitted_temperature(logits, targets) == pytest.approx(1 / model.coef_.item(), rel=2e-3)


def test_a_row_may_have_fewer_classes():
    """Rows of two classes, in an array of two and in one of three."""
    logits, targets = drawn(2.0)
    rows = targets < 2
    logits, targets = logits[rows][:, :2], targets[rows]
    padded = np.pad(logits, ((0, 0), (0, 1)), constant_values=-np.inf)
    expected = fitted_temperature(logits, targets)
    assert fitted_temperature(padded, targets) == pytest.approx(expected)


def test_rows_that_are_all_right_do_not_get_scores_of_one():
    logits = np.tile([3.0, 0.0], (20, 1))
    temperature = fitted_temperature(logits, np.zeros(20, int))
    score = np.exp(log_softmax(logits, temperature))[0, 0]
    assert score == pytest.approx(21 / 22)


test_bad_rows_are_refused = refusals(
    (lambda: reliability([0.5], [True, False]), "must have the same shape (n,)"),
    (lambda: reliability([], []), "must have the same shape (n,)"),
    (lambda: reliability([1.5], [True]), "scores must be from 0 to 1"),
    (lambda: fitted_temperature(np.zeros((3, 1)), np.zeros(3, int)), "logits must have shape"),
    (lambda: fitted_temperature(np.zeros((3, 2)), np.zeros(2, int)), "logits must have shape"),
)


def test_a_logit_of_several_classes_counts_so_often():
    draw = np.random.default_rng(3)
    logits, targets = draw.normal(scale=3, size=(53, 3)), np.zeros(53, int)
    counts = np.array([[1, 4, 2]] * 53)
    expanded = np.repeat(logits, counts[0], axis=1)
    expected = fitted_temperature(expanded, targets)
    assert fitted_temperature(logits, targets, counts) == pytest.approx(expected)
    log_probs = log_softmax(logits, 2.0, counts)
    alone = np.exp(log_softmax(expanded, 2.0))
    np.testing.assert_allclose(np.exp(log_probs[:, 1]), alone[:, 1:5].sum(axis=1))
