import numpy as np
import pytest

from seqkeras.embeddings import Highway
from tests.agreement import DTYPES
from tests.arrays import close, floats, randomize
from tests.complex_step import assert_equals_loops
from tests.references.embeddings import highway, relu


@pytest.mark.parametrize("activation, g", [("tanh", np.tanh), ("relu", relu)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_highway_and_its_gradients_are_the_papers_formula(activation, g, dtype):
    def make():
        layer = Highway(activation)
        layer.build((2, 3, 7))
        return randomize(layer)

    assert_equals_loops(
        make,
        dtype,
        {"inputs": floats(2, 3, 7)},
        lambda layer: [layer.transform.weights, layer.gate.weights],
        lambda layer, weights, inputs: highway(inputs["inputs"], *weights, g),
    )


def test_a_new_highway_carries_most_of_its_input():
    layer, x = Highway(gate_bias=-20.0), floats(2, 3, 7)
    close(layer(x), x, atol=1e-5)
