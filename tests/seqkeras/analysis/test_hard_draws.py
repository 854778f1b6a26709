"""Draws of hard attention attend to one position, as often as its probability says."""

import numpy as np

from seqkeras.analysis.hard_draws import draws_of


def test_draws_follow_the_weights():
    random = np.random.default_rng(3)
    weights = random.dirichlet(np.ones(5), size=3)
    drawn, chosen = draws_of(weights, 4000, seed=3)
    assert drawn.shape == (4000, 3, 5)
    assert np.array_equal(np.sort(drawn, axis=-1)[..., -2:], np.tile([0.0, 1.0], (4000, 3, 1)))
    np.testing.assert_allclose(drawn.mean(axis=0), weights, atol=4 * 0.5 / np.sqrt(4000))
    np.testing.assert_array_equal(chosen.argmax(axis=-1), weights.argmax(axis=-1))
