"""The squares of the masks = loops over queries and keys."""

import numpy as np

from seqkeras.analysis.mask_squares import mask_squares

T = 11
REAL, PREFIX, RADIUS = 9, 4, 2
ORDER = [int(position) for position in np.random.default_rng(3).permutation(T)]
EXPECTED = {
    "padding": lambda t, s: s < REAL,
    "causal": lambda t, s: s <= t,
    "prefix": lambda t, s: s <= t or s < PREFIX,
    "causal, of padded rows": lambda t, s: s <= t and s < REAL,
    "restricted": lambda t, s: abs(t - s) <= RADIUS,
    "restricted and causal": lambda t, s: 0 <= t - s <= RADIUS,
    "permutation, content": lambda t, s: ORDER.index(s) <= ORDER.index(t),
    "permutation, query": lambda t, s: ORDER.index(s) < ORDER.index(t),
}


def test_a_square_is_dark_where_the_query_attends():
    squares = {title.split("\n")[0]: mask for title, mask in mask_squares(T, seed=3).items()}
    assert squares.keys() == EXPECTED.keys()
    for name, mask in squares.items():
        expected = [[EXPECTED[name](t, s) for s in range(T)] for t in range(T)]
        np.testing.assert_array_equal(mask, expected, err_msg=name)
