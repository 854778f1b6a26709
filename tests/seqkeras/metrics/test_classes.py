"""F1 and correlation of classes, beside published examples and NumPy's correlation."""

import numpy as np
import pytest

from seqkeras.metrics import class_f1, matthews_correlation


def test_macro_f1_of_the_example_in_scikit_learns_documentation():
    # https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html
    found = class_f1([0, 2, 1, 0, 0, 1], [0, 1, 2, 0, 1, 2])
    assert found == {0: 0.8, 1: 0.0, 2: 0.0}
    assert np.mean([*found.values()]) == pytest.approx(0.26666666)


def test_the_correlation_of_the_example_in_scikit_learns_documentation():
    # https://scikit-learn.org/stable/modules/generated/sklearn.metrics.matthews_corrcoef.html
    assert matthews_correlation([1, -1, 1, 1], [1, 1, 1, -1]) == pytest.approx(-1 / 3)


def test_with_two_classes_it_is_pearsons_correlation():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 101)
    answers = np.where(rng.random(101) < 0.7, targets, 1 - targets)
    found = matthews_correlation(answers.tolist(), targets.tolist())
    assert found == pytest.approx(np.corrcoef(targets, answers)[0, 1])


def test_with_many_classes_it_is_the_correlation_of_indicators():
    rng = np.random.default_rng(1)
    targets = rng.integers(0, 5, 307)
    answers = np.where(rng.random(307) < 0.6, targets, rng.integers(0, 5, 307))
    # Gorodkin's definition: the covariance of one-hot matrices, summed over classes.
    x, y = np.eye(5)[targets], np.eye(5)[answers]
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    expected = (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())
    assert matthews_correlation(answers.tolist(), targets.tolist()) == pytest.approx(expected)


def test_answers_of_one_class_have_no_correlation():
    assert matthews_correlation(["a", "a", "a"], ["a", "b", "a"]) == 0.0
    assert matthews_correlation(["a", "b", "a"], ["a", "b", "a"]) == 1.0


@pytest.mark.parametrize("metric", [class_f1, matthews_correlation])
@pytest.mark.parametrize("pair", [([], []), (["a"], ["a", "b"])])
def test_what_can_not_be_compared_is_refused(metric, pair):
    with pytest.raises(ValueError, match="needs at least one answer and one target for each"):
        metric(*pair)
