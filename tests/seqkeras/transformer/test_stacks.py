"""An encoder and a decoder of several blocks, under all their masks, beside torch's."""

import keras
import pytest

from seqkeras.transformer import Decoder, Encoder
from tests import vectors
from tests.agreement import DTYPES, arrays_of, assert_agrees

INPUTS = ("source", "target", "source_mask", "target_mask")


class EncoderDecoder(keras.layers.Layer):
    """`nn.Transformer` of our layers: outputs are zero where the target is padding."""

    def __init__(self, *sizes):
        super().__init__()
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

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
