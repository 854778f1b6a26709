import numpy as np

from seqkeras.serving.text import pad


def test_rows_are_padded_on_the_right_as_far_as_the_longest():
    token_ids, lengths = pad([[5, 7, 11], [], [13]])
    np.testing.assert_array_equal(token_ids, [[5, 7, 11], [0, 0, 0], [13, 0, 0]])
    np.testing.assert_array_equal(lengths, [3, 0, 1])
    assert token_ids.dtype == lengths.dtype == np.int64
    assert pad([[5, 6], [9]], 4)[0].tolist() == [[5, 6], [9, 4]]
    assert pad([])[0].shape == (0, 0)
