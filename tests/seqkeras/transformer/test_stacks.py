"""An encoder and a decoder of several blocks, under all their masks, beside torch's."""

import keras
import pytest

from seqkeras.transformer import Decoder, DecoderBlock, Encoder, EncoderBlock
from tests import vectors
from tests.agreement import DTYPES, arrays_of, assert_agrees
from tests.arrays import close, floats

INPUTS = ("source", "target", "source_mask", "target_mask")


class EncoderDecoder(keras.layers.Layer):
    """`nn.Transformer` of our layers: outputs are zero where the target is padding."""

    def __init__(self, num_layers, *sizes):
        super().__init__()
        self.encoder = Encoder(EncoderBlock(*sizes), num_layers)
        self.decoder = Decoder(DecoderBlock(*sizes), num_layers)

    def call(self, source, target, source_mask, target_mask):
        encoded = self.encoder(source, attention_mask=source_mask[:, None])
        hidden = self.decoder(target, encoded, encoded_mask=source_mask)
        return keras.ops.where(target_mask[..., None], hidden, 0.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
def test_an_encoder_and_a_decoder_agree_with_torch(pre_norm, dtype):
    activation, case = ("gelu", "transformer_pre_norm") if pre_norm else ("relu", "transformer")
    assert_agrees(
        lambda: EncoderDecoder(2, 6, 3, 11, activation, pre_norm),
        arrays_of(vectors.load("stacks"), case, dtype),
        dtype,
        lambda layer, given: layer(*(given[name] for name in INPUTS)),
        ["source", "target"],
    )


OPTIONS = {"hidden_dim": 6, "num_heads": 3, "feed_forward_dim": 11, "activation": "gelu"}
STACKS = {
    "Encoder": (Encoder, EncoderBlock, {"pre_norm": True, "attention_window": 2}),
    "Decoder": (Decoder, DecoderBlock, {"cross_attention": False, "residual_stddev": 0.3}),
}
every_stack = pytest.mark.parametrize("stack, block, options", STACKS.values(), ids=STACKS)


@every_stack
def test_every_block_is_like_the_given_one_and_has_weights_of_its_own(stack, block, options):
    given = block(**OPTIONS, **options)
    layer, sequence = stack(given, 3), floats(2, 5, 6)
    layer(sequence)
    if stack is Encoder:
        states = layer.hidden_states(sequence)
        close(states[:2], [sequence, given(sequence)])
        close(states[3], layer.final_norm(layer.blocks[2](states[2])))
    assert layer.blocks[0] is given and len(layer.blocks) == 3
    for other in layer.blocks[1:]:
        assert type(other) is block
        assert {**other.get_config(), "name": ""} == {**given.get_config(), "name": ""}
    assert len({id(weight) for weight in layer.weights}) == len(layer.weights)
    assert len(given.weights) * 3 == sum(len(each.weights) for each in layer.blocks)


def test_a_stack_computes_in_the_precision_of_its_block():
    assert Encoder(EncoderBlock(**OPTIONS, dtype="mixed_float16"), 2).compute_dtype == "float16"


@pytest.mark.parametrize("make", [lambda: 6, lambda: EncoderBlock(**OPTIONS), lambda: DecoderBlock])
def test_what_is_no_block_of_the_decoder_is_refused(make):
    message = r"^Decoder: block must be of class DecoderBlock, as DecoderBlock\(512, 8, 2048\); rec"
    with pytest.raises(ValueError, match=message):
        Decoder(make(), 2)
