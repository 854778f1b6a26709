"""Backbones of KerasNLP with random weights, beside the models that we make of them."""

import warnings

import numpy as np
import pytest
from keras import ops

from seqkeras.models import GPT, Bert
from seqkeras.pretrained.keras_nlp_backbones import load_keras_nlp
from tests.agreement import difference
from tests.arrays import BACKEND, numbers, randomize, right_padded

pytestmark = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="one backend is enough: the others are held against this one"
)
SIZES = {
    "vocabulary_size": 103,
    "num_layers": 2,
    "num_heads": 3,
    "hidden_dim": 24,
    "intermediate_dim": 53,
    "max_sequence_length": 61,
}
TOKENS = {
    "token_ids": np.random.default_rng(0).integers(1, 103, (4, 29)),
    "segment_ids": np.random.default_rng(1).integers(0, 3, (4, 29)),
}
LENGTHS = np.array([29, 17, 5, 28])
REAL = right_padded(LENGTHS, 29)


@pytest.fixture(scope="module")
def keras_nlp():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import keras_nlp
    return keras_nlp


def made(keras_nlp, name, **options):
    return randomize(getattr(keras_nlp.models, name)(**SIZES, **options))


@pytest.mark.parametrize(
    "name, options, given",
    [
        ("BertBackbone", {"num_segments": 3}, TOKENS),
        ("RobertaBackbone", {}, {"token_ids": TOKENS["token_ids"]}),
        ("DistilBertBackbone", {}, {"token_ids": TOKENS["token_ids"]}),
    ],
)
def test_an_encoder_gives_the_same_numbers(name, options, given, keras_nlp):
    backbone = made(keras_nlp, name, dropout=0.2, **options)
    model = load_keras_nlp(backbone)
    assert isinstance(model, Bert)
    theirs = numbers(backbone(given | {"padding_mask": REAL}))
    ours = numbers(model(given | {"lengths": LENGTHS}))
    if name == "BertBackbone":
        assert difference(ours["pooled"], theirs["pooled_output"]) < 1e-5
        theirs = theirs["sequence_output"]
    assert difference(ours["hidden"][REAL], theirs[REAL]) < 1e-5
    assert model.config["dropout"] == model.config["attention_dropout"] == 0.2


def test_a_gpt2_backbone_gives_the_same_logits(keras_nlp):
    backbone = made(keras_nlp, "GPT2Backbone")
    model = load_keras_nlp(backbone)
    assert isinstance(model, GPT)
    given = {"token_ids": TOKENS["token_ids"]}
    hidden = backbone(given | {"padding_mask": REAL})
    theirs = numbers(backbone.token_embedding(hidden, reverse=True))
    assert difference(numbers(model(given))[REAL], theirs[REAL]) < 1e-5


def test_a_backbone_in_half_precision_is_read(keras_nlp):
    backbone = made(keras_nlp, "DistilBertBackbone", dtype="bfloat16")
    model = load_keras_nlp(backbone, dtype="float32")
    found = numbers(ops.cast(backbone.token_embedding.embeddings, "float32"))
    np.testing.assert_array_equal(numbers(model.embedding.embeddings), found)


def test_a_weight_that_we_have_no_place_for_is_refused(keras_nlp):
    backbone = made(keras_nlp, "GPT2Backbone")
    backbone.token_embedding.enable_lora(2)
    message = "^GPT: GPT2Backbone must hold .* received 2 that differ:\n  token_.*: has no use\n"
    with pytest.raises(ValueError, match=message):
        load_keras_nlp(backbone)


def test_another_backbone_is_refused(keras_nlp):
    backbone = made(keras_nlp, "AlbertBackbone", embedding_dim=7)
    message = "^load_keras_nlp: backbone must be one of BertBackbone, .*; received a AlbertBackbone"
    with pytest.raises(ValueError, match=message):
        load_keras_nlp(backbone)
