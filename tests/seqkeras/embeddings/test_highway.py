import numpy as np

from seqkeras.embeddings import Highway
from tests.arrays import close, floats, randomize
from tests.references.embeddings import highway


def test_a_highway_is_the_papers_formula():
    layer, x = Highway("tanh"), floats(2, 3, 7)
    layer.build(x.shape)
    randomize(layer)
    transform, gate = layer.transform.get_weights(), layer.gate.get_weights()
    close(layer(x), highway(x.astype("float64"), transform, gate, np.tanh))


def test_a_new_highway_carries_most_of_its_input():
    layer, x = Highway(gate_bias=-20.0), floats(2, 3, 7)
    close(layer(x), x, atol=1e-5)
