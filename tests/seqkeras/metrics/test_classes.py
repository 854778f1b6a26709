"""F1 and correlation of classes; test_others_metrics.py holds them beside scikit-learn's."""

from seqkeras.metrics import matthews_correlation


def test_answers_of_one_class_have_no_correlation():
    assert matthews_correlation(["a", "a", "a"], ["a", "b", "a"]) == 0.0
    assert matthews_correlation(["a", "b", "a"], ["a", "b", "a"]) == 1.0
