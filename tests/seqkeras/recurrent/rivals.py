"""Our recurrent layers beside Keras's, as functions of all their tensors, and how far apart."""

import keras
import numpy as np
import pytest
from keras import ops, tree

from seqkeras.recurrent import GRU, LSTM, SimpleRNN
from tests import references
from tests.agreement import PRECISIONS, TOLERANCES
from tests.arrays import floats, randomize, right_padded
from tests.autodiff import outputs_and_gradients
from tests.catalogue.case import B, D, S, U
from tests.conftest import others_long

LAYERS = {
    "SimpleRNN": (SimpleRNN, references.rnn, keras.layers.SimpleRNN, 1),
    "LSTM": (LSTM, references.lstm, keras.layers.LSTM, 2),
    "GRU": (GRU, references.gru, keras.layers.GRU, 1),
}
MASKS = {
    "holes and an empty row": np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool),
    "no mask": None,
    "right-padded": right_padded([5, 3], S),
    "left-padded": right_padded([5, 3], S)[:, ::-1],
}
every_layer = pytest.mark.parametrize("name", LAYERS)
every_mask = pytest.mark.parametrize("mask", others_long(MASKS.values()), ids=MASKS)
every_precision = pytest.mark.parametrize(
    "dtype, limit",
    others_long([(dtype, TOLERANCES[dtype]) for dtype in PRECISIONS]),
    ids=PRECISIONS,
)


def states(count, dtype="float32"):
    return [floats(B, U, seed=index).astype(dtype) for index in range(count)]


def built(layer, dim=D):
    layer.build((None, None, dim))
    return randomize(layer)


def results_of(layer, weights, sequences, initial_state=None, mask=None):
    """A flat list of what the layer gives with these weights, of which no variable changes."""
    fixed = [each.value for each in layer.non_trainable_variables]
    results, _ = layer.stateless_call(
        weights, fixed, sequences, initial_state=initial_state, mask=mask
    )
    return tree.flatten(results)


def results_and_gradients(layer, sequences, initial_state=None, mask=None):
    """What a layer gives, and the gradients of a weighted sum of it by everything it takes.

    Returns:
        A list of arrays, and a list of arrays: by the weights, the sequences, the initial states.
    """
    mask = None if mask is None else ops.convert_to_tensor(mask)

    def loss(values):
        results = tree.flatten(layer(values[0], initial_state=values[1:] or None, mask=mask))
        return sum(
            ops.sum(result * ops.cast(floats(*result.shape, seed=50 + index), result.dtype))
            for index, result in enumerate(results)
        ), results

    return outputs_and_gradients(layer, loss, [sequences, *(initial_state or [])])


def assert_same(actual, expected, limit):
    """Results within the limit of the largest value of each, gradients of that of them all."""
    (results, gradients), (rival_results, rival_gradients) = actual, expected
    for each, other in zip(results, rival_results, strict=True):
        assert np.max(np.abs(each - other)) <= limit * np.max(np.abs(other))
    largest = max(np.max(np.abs(other)) for other in rival_gradients)
    for each, other in zip(gradients, rival_gradients, strict=True):
        assert each.shape == other.shape
        assert np.max(np.abs(each - other)) <= limit * largest
