"""What torch said of its own layers, outputs and gradients, packed and in several layers."""

import pytest

from tests import vectors
from tests.seqkeras.recurrent.rivals import every_precision
from tests.seqkeras.recurrent.torch_networks import CLASSES, assert_torch_agrees
from tests.vectors.recurrent import LENGTHS, NETWORKS


@pytest.fixture(scope="module")
def stored():
    return vectors.load("recurrent")


@every_precision
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("cell", CLASSES)
def test_outputs_and_gradients_are_those_of_torch(cell, network, dtype, limit, stored):
    prefix = f"{cell}/{network}/"
    arrays = {
        name.removeprefix(prefix): each for name, each in stored.items() if name.startswith(prefix)
    }
    assert_torch_agrees(arrays, cell, LENGTHS, dtype, limit, **NETWORKS[network])
