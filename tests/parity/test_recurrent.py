"""torch's recurrent layers, live, at the sizes of the benchmarks."""

import pytest

from tests.seqkeras.recurrent.rivals import every_precision
from tests.seqkeras.recurrent.torch_networks import CLASSES, assert_torch_agrees
from tests.vectors import recurrent

LENGTHS = [61, 17, 53, 1, 31, 47, 61]


@every_precision
@pytest.mark.parametrize(
    "network, lengths",
    [("one layer", None), *((network, LENGTHS) for network in recurrent.NETWORKS)],
    ids=["one layer, not padded", *recurrent.NETWORKS],
)
@pytest.mark.parametrize("cell", CLASSES)
def test_large_networks_are_those_of_torch(cell, network, lengths, dtype, limit):
    options = recurrent.NETWORKS[network]
    # float32 beside torch's float64: what is measured is our rounding alone.
    arrays = recurrent.network(cell, lengths, 128, 256, seed=1, **options)
    assert_torch_agrees(arrays, cell, lengths, dtype, limit, **options)
