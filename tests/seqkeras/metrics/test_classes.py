"""F1 and correlation of classes; test_others_metrics.py holds them beside scikit-learn's."""

import pytest

from seqkeras.metrics import class_f1, matthews_correlation


def test_answers_of_one_class_have_no_correlation():
    assert matthews_correlation(["a", "a", "a"], ["a", "b", "a"]) == 0.0
    assert matthews_correlation(["a", "b", "a"], ["a", "b", "a"]) == 1.0


@pytest.mark.parametrize("metric", [class_f1, matthews_correlation])
@pytest.mark.parametrize("pair", [([], []), (["a"], ["a", "b"])])
def test_what_can_not_be_compared_is_refused(metric, pair):
    with pytest.raises(ValueError, match="needs at least one answer and one target for each"):
        metric(*pair)
