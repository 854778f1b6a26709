"""Blocks and models beside those of KerasNLP, live: outputs, and gradients by every weight."""

import warnings

import numpy as np
import pytest
from keras import ops

from seqkeras.models import GPT, Bert
from seqkeras.transformer import DecoderBlock, EncoderBlock
from tests.agreement import difference
from tests.arrays import BACKEND, floats, gradients, numbers, right_padded
from tests.autodiff import gradients_of

pytestmark = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="one backend is enough: the others are held against this one"
)
every_norm = pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
TOKENS = {
    "token_ids": np.random.default_rng(0).integers(1, 103, (4, 29)),
    "segment_ids": np.random.default_rng(1).integers(0, 2, (4, 29)),
}
LENGTHS = np.array([29, 17, 5, 28])
REAL = right_padded(LENGTHS, 29)

# KerasNLP has the same layers in another order of weights: these are ours, as places in theirs.
ENCODER = [*range(10), *range(12, 16), 10, 11]
DECODER = [*range(10), *range(20, 26), *range(10, 20)]
WITHOUT_CROSS_ATTENTION = [*range(16)]


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


def assert_same(ours, rival, order, call_ours, call_rival, inputs=()):
    """Outputs, and gradients by inputs and by every weight, with the rival's random weights."""
    call_rival(rival, *inputs), call_ours(ours, *inputs)  # builds them
    rival.set_weights([floats(*each.shape, seed=3) / 4 for each in rival.weights])
    ours.set_weights([rival.get_weights()[place] for place in order])
    outputs = numbers([call_ours(ours, *inputs), call_rival(rival, *inputs)])
    assert difference(*outputs) < 1e-5
    factors = floats(*outputs[0].shape, seed=5)

    def all_gradients(layer, call):
        by_weights = gradients(layer, lambda each: ops.sum(factors * call(each, *inputs)))
        if not inputs:
            return by_weights, []
        return by_weights, gradients_of(
            lambda values: ops.sum(factors * call(layer, *values)), inputs
        )

    by_weights, by_inputs = all_gradients(ours, call_ours)
    expected, expected_by_inputs = all_gradients(rival, call_rival)
    assert len(by_weights) == len(expected) == len(order)
    expected = [expected[place] for place in order]
    assert difference([by_weights, by_inputs], [expected, expected_by_inputs]) < 1e-5


@every_norm
def test_an_encoder_block_is_that_of_keras_nlp(pre_norm, keras_nlp):
    assert_same(
        EncoderBlock(24, 3, 53, "gelu", pre_norm),
        keras_nlp.layers.TransformerEncoder(53, 3, activation="gelu", normalize_first=pre_norm),
        ENCODER,
        lambda layer, sequence: layer(sequence, attention_mask=REAL[:, None]),
        lambda layer, sequence: layer(sequence, padding_mask=REAL),
        [floats(4, 29, 24)],
    )


@every_norm
def test_a_decoder_block_is_that_of_keras_nlp(pre_norm, keras_nlp):
    source = right_padded([31, 30, 7, 2], 31)
    assert_same(
        DecoderBlock(24, 3, 53, "relu", pre_norm),
        keras_nlp.layers.TransformerDecoder(53, 3, normalize_first=pre_norm),
        DECODER,
        lambda layer, sequence, encoded: layer(
            sequence, encoded, attention_mask=REAL[:, None], encoded_mask=source
        ),
        lambda layer, sequence, encoded: layer(
            sequence, encoded, decoder_padding_mask=REAL, encoder_padding_mask=source
        ),
        [floats(4, 29, 24), floats(4, 31, 24, seed=1)],
    )


@every_norm
def test_a_block_of_a_language_model_is_that_of_keras_nlp(pre_norm, keras_nlp):
    assert_same(
        DecoderBlock(24, 3, 53, "gelu", pre_norm, cross_attention=False),
        keras_nlp.layers.TransformerDecoder(53, 3, activation="gelu", normalize_first=pre_norm),
        WITHOUT_CROSS_ATTENTION,
        lambda layer, sequence: layer(sequence),
        lambda layer, sequence: layer(sequence),
        [floats(4, 29, 24)],
    )


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
        [0, 1, *stacked(2, WITHOUT_CROSS_ATTENTION, 3, last=2)],
        ours,
        theirs,
    )
