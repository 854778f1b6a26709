import numpy as np

from seqkeras.serving.text import pad


def test_rows_are_padded_on_the_right_as_far_as_the_longest():
    token_ids, lengths = pad([[5, 7, 11], [], [13]])
    np.testing.assert_array_equal(token_ids, [[5, 7, 11], [0, 0, 0], [13, 0, 0]])
    np.testing.assert_array_equal(lengths, [3, 0, 1])
    assert token_ids.dtype == lengths.dtype == np.int64


def test_no_rows_make_an_empty_rectangle():
    token_ids, lengths = pad([])
    assert token_ids.shape == (0, 0)
    assert lengths.shape == (0,)
