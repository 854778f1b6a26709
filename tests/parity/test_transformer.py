"""Blocks and models beside those of torch and Hugging Face, live and at real sizes."""

import pytest

from seqkeras.models import GPT, Bert
from seqkeras.transformer import DecoderBlock, EncoderBlock
from tests.agreement import DTYPES, assert_agrees
from tests.seqkeras.transformer.test_stacks import INPUTS, EncoderDecoder
from tests.vectors import stacks
from tests.vectors import transformer as rivals

every_dtype = pytest.mark.parametrize("dtype", DTYPES)
every_norm = pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
BLOCK = {"batch": 4, "length": 64, "dim": 256, "heads": 8, "inner": 1024}
STACK = BLOCK | {"source_length": 31, "dim": 128, "heads": 4, "inner": 256, "layers": 3}
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
@every_norm
def test_an_encoder_and_a_decoder_agree_with_torch(pre_norm, dtype):
    activation = "gelu" if pre_norm else "relu"
    assert_agrees(
        lambda: EncoderDecoder(3, 128, 4, 256, activation, pre_norm),
        stacks.transformer(dtype, pre_norm, activation, **STACK),
        dtype,
        lambda layer, given: layer(*(given[name] for name in INPUTS)),
        ["source", "target"],
    )


@every_dtype
def test_distilbert_agrees_with_hugging_face(dtype):
    assert_agrees(
        lambda: Bert(1009, 64, 4, 4, 128, max_length=61, num_segments=0, pooler=None),
        stacks.distilbert(dtype, **MODEL, inner=128),
        dtype,
        lambda model, given: model({name: given[name] for name in ("token_ids", "lengths")}),
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
