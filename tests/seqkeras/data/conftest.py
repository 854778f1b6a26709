"""One noisy sample for all tests of dates."""

import pytest

from seqkeras.data import dates


@pytest.fixture(scope="package")
def noisy():
    return dates.sample("train", 4_001, seed=5, noisy=True)
