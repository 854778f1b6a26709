import numpy as np
import pytest

from seqkeras.transformer import DecoderBlock, EncoderBlock, FeedForward
from tests import vectors
from tests.agreement import DTYPES, arrays_of, assert_agrees
from tests.arrays import floats, right_padded
from tests.complex_step import assert_is_the_formula
from tests.conftest import others_long
from tests.references import transformer as references
from tests.refusals import refusals

OPTIONS = {"activation": "gelu", "epsilon": 1e-3}
SIZES = {"hidden_dim": 6, "num_heads": 3, "feed_forward_dim": 11}
MASK = right_padded([5, 3], 5)
STORED = vectors.load("transformer")
every_norm = pytest.mark.parametrize("pre_norm", [False, True], ids=["post_norm", "pre_norm"])
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def named(weights, cross=False):
    """The list of a block's weights as the references name them."""
    parts = {"attention": 8, "attention_norm": 2, "feed_forward": 4, "feed_forward_norm": 2}
    if cross:
        parts |= {"cross_attention": 8, "cross_norm": 2}
    cuts = np.cumsum([0, *parts.values()])
    return {name: weights[start:stop] for name, start, stop in zip(parts, cuts[:-1], cuts[1:])}


def encoder_inputs():
    mask = np.repeat(MASK[:, None], 5, axis=1)
    return {"sequence": floats(2, 5, 6), "attention_mask": mask}


def decoder_inputs():
    encoded_mask = right_padded([7, 2], 7)
    return {"sequence": floats(2, 5, 6), "encoded": floats(2, 7, 13), "encoded_mask": encoded_mask}


@pytest.mark.parametrize("activation", references.ACTIVATIONS)
def test_a_feed_forward_network_is_the_papers_formula(activation):
    def reference(weights, inputs):
        return references.feed_forward(inputs, *weights, activation)

    assert_is_the_formula(
        lambda: FeedForward(11, activation), {"inputs": floats(2, 5, 7)}, reference
    )


@every_dtype
@every_norm
def test_an_encoder_block_agrees_with_torch(pre_norm, dtype):
    activation = "gelu" if pre_norm else "relu"
    assert_agrees(
        lambda: EncoderBlock(6, 3, 7, activation, pre_norm),
        arrays_of(STORED, "encoder_pre_norm" if pre_norm else "encoder", dtype),
        dtype,
        lambda layer, given: layer(given["sequence"], attention_mask=given["mask"][:, None]),
        ["sequence"],
    )


@every_dtype
@every_norm
def test_a_decoder_block_agrees_with_torch(pre_norm, dtype):
    activation = "gelu" if pre_norm else "relu"
    assert_agrees(
        lambda: DecoderBlock(6, 3, 11, activation, pre_norm),
        arrays_of(STORED, "decoder_pre_norm" if pre_norm else "decoder", dtype),
        dtype,
        lambda layer, given: layer(
            given["sequence"], given["encoded"], encoded_mask=given["encoded_mask"]
        ),
        ["sequence", "encoded"],
    )


def in_window(window, mask):
    """A (B, T, T) mask, less what is further than the window."""
    far = [[abs(t - s) > window for s in range(mask.shape[2])] for t in range(mask.shape[1])]
    return mask & ~np.array(far)


@every_norm
@pytest.mark.parametrize("window", others_long([None, 2, 7], short=2))
def test_an_encoder_block_attends_to_its_window_under_either_form_of_mask(window, pre_norm):
    def make():
        return EncoderBlock(**SIZES, **OPTIONS, pre_norm=pre_norm, attention_window=window)

    def reference(weights, sequence, attention_mask):
        near = in_window(window or 5, np.broadcast_to(attention_mask, (2, 5, 5)))
        return references.transformer_block(
            sequence, near, named(weights), pre_norm=pre_norm, **OPTIONS
        )

    for mask in (np.repeat(MASK[:, None], 5, axis=1), MASK[:, None]):
        inputs = {"sequence": floats(2, 5, 6), "attention_mask": mask}
        assert_is_the_formula(make, inputs, reference)


@every_norm
@pytest.mark.parametrize("window", [None, 1])
def test_a_decoder_block_attends_to_its_window_and_all_of_the_source(window, pre_norm):
    def make():
        return DecoderBlock(**SIZES, **OPTIONS, pre_norm=pre_norm, attention_window=window)

    def reference(weights, sequence, encoded, encoded_mask):
        return references.transformer_block(
            sequence,
            in_window(window or 5, np.repeat(references.causal(5), 2, axis=0)),
            named(weights, cross=True),
            pre_norm=pre_norm,
            encoded=encoded,
            encoded_mask=np.repeat(encoded_mask[:, None], 5, axis=1),
            **OPTIONS,
        )

    assert_is_the_formula(make, decoder_inputs(), reference)


GIVEN = "DecoderBlock: encoded must be given with cross_attention, and only then"
test_what_makes_no_block_is_refused = refusals(
    (lambda: EncoderBlock(6, 5, 7), "num_heads must divide hidden_dim; received num_heads=5, hidd"),
    (
        lambda: EncoderBlock(6, 3, 7, activation="gelu_new"),
        "FeedForward: activation must be one of ['gelu', ...]; received 'gelu_new'.",
    ),
    (lambda: EncoderBlock(**SIZES, attention_window=0), "attention_window must be a positive inte"),
    (lambda: EncoderBlock(**SIZES)(floats(2, 5, 7)), "EncoderBlock: sequence must have shape (bat"),
    (lambda: DecoderBlock(**SIZES)(floats(2, 5, 6)), GIVEN),
    (lambda: DecoderBlock(**SIZES, cross_attention=False)(*[floats(2, 5, 6)] * 2), GIVEN),
)
