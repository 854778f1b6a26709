"""Blocks and models beside those of torch, Hugging Face and KerasNLP, live and at real sizes."""

import warnings

import numpy as np
import pytest
from keras import ops

from seqkeras.models import GPT, Bert
from seqkeras.transformer import DecoderBlock, EncoderBlock
from tests.arrays import floats, gradients, numbers, right_padded
from tests.seqkeras.attention.agreement import difference
from tests.seqkeras.transformer.agreement import DTYPES, assert_agrees
from tests.vectors import transformer as rivals

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_norm = pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
BLOCK = {"batch": 4, "length": 64, "dim": 256, "heads": 8, "inner": 1024}
MODEL = {"batch": 4, "length": 32, "vocab": 1009, "dim": 64, "layers": 4, "heads": 4, "places": 61}


@every_dtype
@every_norm
def test_an_encoder_block_agrees_with_torch(pre_norm, dtype):
    activation = "gelu" if pre_norm else "relu"
    assert_agrees(
        lambda: EncoderBlock(256, 8, 1024, activation, pre_norm),
        rivals.encoder_layer(dtype, pre_norm, activation, **BLOCK),
        dtype,
        lambda layer, given: layer(given["sequence"], attention_mask=given["mask"][:, None]),
        ["sequence"],
    )


@every_dtype
@every_norm
def test_a_decoder_block_agrees_with_torch(pre_norm, dtype):
    activation = "gelu" if pre_norm else "relu"
    assert_agrees(
        lambda: DecoderBlock(256, 8, 1024, activation, pre_norm),
        rivals.decoder_layer(dtype, pre_norm, activation, **BLOCK, source_length=31),
        dtype,
        lambda layer, given: layer(
            given["sequence"], given["encoded"], encoded_mask=given["encoded_mask"]
        ),
        ["sequence", "encoded"],
    )


@every_dtype
def test_bert_agrees_with_hugging_face(dtype):
    def call(model, given):
        return model({name: given[name] for name in ("token_ids", "segment_ids", "lengths")})

    assert_agrees(
        lambda: Bert(1009, 64, 4, 4, 128, max_length=61),
        rivals.bert(dtype, **MODEL, inner=128),
        dtype,
        call,
    )


@every_dtype
@pytest.mark.parametrize("pre_norm", [True, False], ids=["gpt2", "gpt1"])
def test_gpt_agrees_with_hugging_face(pre_norm, dtype):
    arrays = rivals.gpt2(dtype, **MODEL, inner=256) if pre_norm else rivals.gpt1(dtype, **MODEL)
    assert_agrees(
        lambda: GPT(1009, 64, 4, 4, 256, max_length=61, pre_norm=pre_norm),
        arrays,
        dtype,
        lambda model, given: model({"token_ids": given["token_ids"]}),
    )


# KerasNLP has the same layers in another order of weights: these are ours, as places in theirs.
ENCODER = [*range(10), *range(12, 16), 10, 11]
DECODER = [*range(10), *range(20, 26), *range(10, 20)]
PLAIN = [*range(16)]


def stacked(first, block, num_layers, last):
    """The order of a model whose blocks begin at place `first`."""
    places = [first + 16 * level + place for level in range(num_layers) for place in block]
    end = first + 16 * num_layers
    return [*places, *range(end, end + last)]


def assert_same(ours, rival, order, call_ours, call_rival):
    """Outputs and gradients by every weight, with the rival's random weights."""
    call_rival(rival), call_ours(ours)  # builds them
    rival.set_weights([floats(*each.shape, seed=3) / 8 for each in rival.weights])
    ours.set_weights([rival.get_weights()[place] for place in order])
    outputs = numbers([call_ours(ours), call_rival(rival)])
    assert difference(*outputs) < 1e-5
    factors = floats(*outputs[0].shape, seed=5)
    actual = gradients(ours, lambda each: ops.sum(factors * call_ours(each)))
    expected = gradients(rival, lambda each: ops.sum(factors * call_rival(each)))
    assert len(actual) == len(expected) == len(order)
    assert difference(actual, [expected[place] for place in order]) < 1e-5


@pytest.fixture(scope="module")
def keras_nlp():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import keras_nlp
    return keras_nlp


@every_norm
def test_an_encoder_block_agrees_with_keras_nlp(pre_norm, keras_nlp):
    sequence, mask = floats(4, 64, 128), right_padded([64, 31, 7, 50], 64)
    assert_same(
        EncoderBlock(128, 4, 512, "gelu", pre_norm),
        keras_nlp.layers.TransformerEncoder(512, 4, activation="gelu", normalize_first=pre_norm),
        ENCODER,
        lambda layer: layer(sequence, attention_mask=mask[:, None]),
        lambda layer: layer(sequence, padding_mask=mask),
    )


@every_norm
def test_a_decoder_block_agrees_with_keras_nlp(pre_norm, keras_nlp):
    sequence, encoded = floats(4, 64, 128), floats(4, 31, 128, seed=1)
    mask = right_padded([31, 30, 7, 2], 31)
    assert_same(
        DecoderBlock(128, 4, 512, "relu", pre_norm),
        keras_nlp.layers.TransformerDecoder(512, 4, normalize_first=pre_norm),
        DECODER,
        lambda layer: layer(sequence, encoded, encoded_mask=mask),
        lambda layer: layer(sequence, encoded, encoder_padding_mask=mask),
    )


def test_bert_agrees_with_keras_nlp(keras_nlp):
    random = np.random.default_rng(0)
    token_ids, segment_ids = random.integers(1, 1009, (4, 32)), random.integers(0, 2, (4, 32))
    lengths = np.array([32, 17, 5, 30])
    mask = right_padded(lengths, 32)
    given = {"token_ids": token_ids, "segment_ids": segment_ids}

    def joined(hidden, pooled):  # padded positions have no meaning
        return ops.concatenate([ops.where(mask[..., None], hidden, 0), pooled[:, None]], axis=1)

    def ours(model):
        outputs = model(given | {"lengths": lengths})
        return joined(outputs["hidden"], outputs["pooled"])

    def theirs(model):
        outputs = model(given | {"padding_mask": mask})
        return joined(outputs["sequence_output"], outputs["pooled_output"])

    assert_same(
        Bert(1009, 64, 3, 4, 128, max_length=61, activation="gelu_tanh"),
        keras_nlp.models.BertBackbone(1009, 3, 4, 64, 128, max_sequence_length=61),
        [0, 2, 1, 3, 4, *stacked(5, ENCODER, 3, last=2)],
        ours,
        theirs,
    )


def test_gpt2_agrees_with_keras_nlp(keras_nlp):
    token_ids = np.random.default_rng(0).integers(1, 1009, (4, 32))
    given = {"token_ids": token_ids, "padding_mask": np.ones((4, 32), bool)}
    assert_same(
        GPT(1009, 64, 3, 4, 128, max_length=61),
        keras_nlp.models.GPT2Backbone(1009, 3, 4, 64, 128, max_sequence_length=61),
        [0, 1, *stacked(2, PLAIN, 3, last=2)],
        lambda model: model({"token_ids": token_ids}),
        lambda model: model.token_embedding(model(given), reverse=True),
    )
