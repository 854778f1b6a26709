"""Our recurrent layers beside Keras's, as functions of all their tensors, and how far apart."""

import keras
import numpy as np
import pytest
from keras import ops, tree

from seqkeras.recurrent import GRU, LSTM, SimpleRNN
from tests import references
from tests.arrays import BACKEND, floats, numbers, randomize, right_padded
from tests.autodiff import gradients_of
from tests.catalogue.case import B, D, S, U

LAYERS = {
    "SimpleRNN": (SimpleRNN, references.rnn, keras.layers.SimpleRNN, 1),
    "LSTM": (LSTM, references.lstm, keras.layers.LSTM, 2),
    "GRU": (GRU, references.gru, keras.layers.GRU, 1),
}
MASKS = {
    "no mask": None,
    "right-padded": right_padded([5, 3], S),
    "left-padded": right_padded([5, 3], S)[:, ::-1],
    "holes and an empty row": np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool),
}
every_layer = pytest.mark.parametrize("name", LAYERS)
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
every_precision = pytest.mark.parametrize(
    "dtype, limit",
    [
        ("float32", 1e-5),
        pytest.param(
            "float64",
            1e-9,
            marks=pytest.mark.skipif(
                BACKEND != "tensorflow", reason="Keras's JAX and PyTorch multiply in float32"
            ),
        ),
    ],
    ids=["float32", "float64"],
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
    weights = [numbers(each.value) for each in layer.trainable_variables]
    count = len(weights)
    mask = None if mask is None else ops.convert_to_tensor(mask)

    def results(values):
        return results_of(layer, values[:count], values[count], values[count + 1 :] or None, mask)

    def loss(values):
        return sum(
            ops.sum(each * ops.cast(floats(*each.shape, seed=50 + index), each.dtype))
            for index, each in enumerate(results(values))
        )

    values = [*weights, sequences, *(initial_state or [])]
    found = results([ops.convert_to_tensor(each) for each in values])
    return numbers(found), gradients_of(loss, values)


def assert_same(actual, expected, limit):
    """Results within the limit of the largest value of each, gradients of that of them all."""
    (results, gradients), (rival_results, rival_gradients) = actual, expected
    for each, other in zip(results, rival_results, strict=True):
        assert np.max(np.abs(each - other)) <= limit * np.max(np.abs(other))
    largest = max(np.max(np.abs(other)) for other in rival_gradients)
    for each, other in zip(gradients, rival_gradients, strict=True):
        assert each.shape == other.shape
        assert np.max(np.abs(each - other)) <= limit * largest
