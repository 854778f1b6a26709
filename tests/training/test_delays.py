import numpy as np
import pytest

from seqkeras.training.parts.delays import delays_of


@pytest.mark.parametrize(
    ("answers", "targets", "expected"),
    [
        ([1, 1, 1], [1, 1, 1], [1]),
        ([0, 0, 1], [1, 1, 1], [3]),
        ([1, 0, 1], [1, 1, 1], [3]),
        ([1, 1, 0], [1, 1, 1], []),  # wrong at the end
        ([0, 0, 0, 1, 2, 2], [0, 0, 1, 1, 2, 2], [1, 2, 1]),
        ([0, 0, 0, 0, 2, 2], [0, 0, 1, 1, 2, 2], [1, 1]),
    ],
)
def test_a_delay_is_the_first_frame_from_which_the_answer_stays_right(answers, targets, expected):
    assert delays_of(np.array(answers), np.array(targets)) == expected
