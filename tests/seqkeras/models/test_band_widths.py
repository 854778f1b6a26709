"""Widths of bands against loops in float64."""

import numpy as np
import pytest

from seqkeras.models import BandWidths
from tests.arrays import close

B, H, C = 3, 5, 2


def drawn(quantiles):
    """Quantiles that increase, and factors."""
    random = np.random.default_rng(0)
    values = np.sort(random.normal(size=(B, H, C, len(quantiles))), axis=-1)
    return values, random.uniform(0.2, 3, (C, len(quantiles) - 1))


@pytest.mark.parametrize(
    ("quantiles", "centre"),
    [
        ((0.1, 0.5, 0.9), [1]),
        ((0.1, 0.25, 0.75, 0.9), [1, 2]),
        ((0.6, 0.7, 0.9), [0]),
        ((0.3,), [0]),
    ],
)
def test_distances_are_multiplied_about_a_centre_that_stays(quantiles, centre):
    values, factors = drawn(quantiles)
    layer = BandWidths(quantiles, C)
    close(layer(values), values, 1e-6)
    layer.factors.assign(factors)
    actual = np.asarray(layer(values), "float64")
    for place in np.ndindex(B, H, C):
        row, found = values[place], actual[place]
        assert np.mean(found[centre]) == pytest.approx(np.mean(row[centre]), abs=1e-6)
        for index, factor in enumerate(factors[place[-1]]):
            distance = factor * (row[index + 1] - row[index])
            assert found[index + 1] - found[index] == pytest.approx(distance, abs=1e-6)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"must increase between 0 and 1; received \(0.5, 0.1\)"):
        BandWidths((0.5, 0.1))
    with pytest.raises(ValueError, match=r"\(batch, steps, 2, 3\); received \(3, 5, 2, 4\)"):
        BandWidths((0.1, 0.5, 0.9), 2)(np.zeros((B, H, C, 4)))
