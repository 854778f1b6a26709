import numpy as np
import pytest

from seqkeras.export.verifying.parity import Comparison, ParityError
from seqkeras.values import BANNED_LOGIT


def test_numbers_are_held_beside_the_largest_of_them():
    comparison = Comparison(1)
    comparison.compare_numbers("onnx", np.float32([100, 1]), np.float32([100.001, 1]))
    assert comparison.finish()["onnx_difference"] == pytest.approx(1e-5, rel=0.1)


@pytest.mark.parametrize("wrong", [0, 1, 2])
@pytest.mark.parametrize("compare", ["compare_numbers", "compare_log_probs"])
def test_the_worst_of_all_batches_counts_and_is_told_once(compare, wrong):
    comparison = Comparison(3)
    for batch in range(3):
        actual = np.float32([2, 1 + (batch == wrong) / 8])
        getattr(comparison, compare)("onnx", actual, np.float32([2, 1]))
    with pytest.raises(ParityError) as raised:
        comparison.finish()
    assert str(raised.value).count("differ by") == 1 and "differ by 0." in str(raised.value)


@pytest.mark.parametrize(
    "actual",
    [
        [2.001, 1, BANNED_LOGIT],  # a thousandth is little beside the last, too much beside 2
        [2, 1, 0],
        [2, BANNED_LOGIT, BANNED_LOGIT],
        [2, 1, np.nan],
        [np.nan, 1, BANNED_LOGIT],
    ],
)
def test_what_may_not_be_hides_no_difference(actual):
    comparison = Comparison(1)
    comparison.compare_numbers("onnx", np.float32(actual), np.float32([2, 1, BANNED_LOGIT]))
    with pytest.raises(ParityError, match="onnx numbers differ by .* from Keras"):
        comparison.finish()


def test_numbers_that_are_equal_where_they_may_be_pass():
    comparison = Comparison(1)
    expected = np.float32([2, 1, BANNED_LOGIT])
    comparison.compare_numbers("onnx", np.float32([2, 1, BANNED_LOGIT * 1.1]), expected)
    assert comparison.finish()["onnx_difference"] == 0


@pytest.mark.parametrize("compare", ["compare_numbers", "compare_log_probs"])
def test_a_model_that_gives_no_numbers_is_said_to(compare):
    comparison = Comparison(1)
    given = np.float32([2, np.nan, 1])
    getattr(comparison, compare)("onnx", given, given)
    with pytest.raises(ParityError, match="not the trained one: Keras itself gives NaN: look at"):
        comparison.finish()
