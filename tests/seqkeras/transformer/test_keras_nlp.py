"""Blocks and models beside those of KerasNLP, live: outputs, and gradients by every weight."""

import warnings

import numpy as np
import pytest
from keras import ops

from seqkeras.models import GPT, Bert
from tests.agreement import difference
from tests.arrays import BACKEND, floats, gradients, numbers, right_padded

pytestmark = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="one backend is enough: the others are held against this one"
)
TOKENS = {
    "token_ids": np.random.default_rng(0).integers(1, 103, (4, 29)),
    "segment_ids": np.random.default_rng(1).integers(0, 2, (4, 29)),
}
LENGTHS = np.array([29, 17, 5, 28])
REAL = right_padded(LENGTHS, 29)

# KerasNLP has the same layers in another order of weights: these are ours, as places in theirs.
ENCODER = [*range(10), *range(12, 16), 10, 11]


@pytest.fixture(scope="module")
def keras_nlp():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import keras_nlp
    return keras_nlp


def stacked(first, block, num_layers, last):
    """The order of a model whose blocks begin at place `first`."""
    places = [first + 16 * level + place for level in range(num_layers) for place in block]
    end = first + 16 * num_layers
    return [*places, *range(end, end + last)]


def test_bert_is_that_of_keras_nlp(keras_nlp):
    def joined(hidden, pooled):  # padded positions have no meaning
        return ops.concatenate([ops.where(REAL[..., None], hidden, 0), pooled[:, None]], axis=1)

    def ours(model):
        outputs = model(TOKENS | {"lengths": LENGTHS})
        return joined(outputs["hidden"], outputs["pooled"])

    def theirs(model):
        outputs = model(TOKENS | {"padding_mask": REAL})
        return joined(outputs["sequence_output"], outputs["pooled_output"])

    assert_same(
        Bert(103, 24, 3, 3, 53, max_length=61, activation="gelu_tanh"),
        keras_nlp.models.BertBackbone(103, 3, 3, 24, 53, max_sequence_length=61),
        [0, 2, 1, 3, 4, *stacked(5, ENCODER, 3, last=2)],
        ours,
        theirs,
    )


def test_gpt2_is_that_of_keras_nlp(keras_nlp):
    token_ids = TOKENS["token_ids"]

    def ours(model):
        return ops.where(REAL[..., None], model({"token_ids": token_ids}), 0)

    def theirs(model):
        hidden = model({"token_ids": token_ids, "padding_mask": REAL})
        return ops.where(REAL[..., None], model.token_embedding(hidden, reverse=True), 0)

    assert_same(
        GPT(103, 24, 3, 3, 53, max_length=61),
        keras_nlp.models.GPT2Backbone(103, 3, 3, 24, 53, max_sequence_length=61),
        [0, 1, *stacked(2, [*range(16)], 3, last=2)],
        ours,
        theirs,
    )


def assert_same(ours, rival, order, call_ours, call_rival):
    """Outputs, and gradients by every weight, with the rival's random weights."""
    call_rival(rival), call_ours(ours)  # builds them
    rival.set_weights([floats(*each.shape, seed=3) / 4 for each in rival.weights])
    ours.set_weights([rival.get_weights()[place] for place in order])
    outputs = numbers([call_ours(ours), call_rival(rival)])
    assert difference(*outputs) < 1e-5
    factors = floats(*outputs[0].shape, seed=5)
    actual, expected = (
        gradients(layer, lambda each, call=call: ops.sum(factors * call(each)))
        for layer, call in ((ours, call_ours), (rival, call_rival))
    )
    assert len(actual) == len(expected) == len(order)
    assert difference(actual, [expected[place] for place in order]) < 1e-5
