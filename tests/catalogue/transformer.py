"""Positions, tied embeddings, and the blocks of a Transformer."""

import numpy as np

from seqkeras.attention import DistanceBias
from seqkeras.embeddings import LearnedPositions, SinusoidalPositions, TokenEmbedding
from seqkeras.transformer import (
    Decoder,
    DecoderBlock,
    Encoder,
    EncoderBlock,
    FeedForward,
    LayerNorm,
    TwoStreamBlock,
    TwoStreamDecoder,
)
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S

N, H, F = 3, 5, 11  # heads, their width, width of the feed-forward network
HIDDEN = N * H
LENGTH, LENGTHS = 7, np.array([7, 4])  # of the sequences
SOURCE, ENCODED = 13, 17  # length and width of what an encoder gave


def ids(vocab_size, length, seed=0):
    return np.random.default_rng([seed, length]).integers(1, vocab_size, (B, length))


def position_case(make, name):
    positions = {"positions": np.array([[0, 1, 2, 3, 4], [3, 1, 4, 7, 5]])}
    return Case(name, make, lambda: positions, {"positions": 1}, past=("positions",))


def token_case(scale):
    return Case(
        f"TokenEmbedding({scale})",
        lambda: TokenEmbedding(19, D, scale=scale, stddev=0.5),
        lambda: {"token_ids": ids(19, S)},
        {"token_ids": 1},
        past=("token_ids",),
    )


def layer_case(make, name, scale=100):
    inputs = {"inputs": floats(B, S, D)}
    return Case(name, make, lambda: inputs, {"inputs": 1}, past=("inputs",), scale=scale)


def options(activation, pre_norm):
    return {
        "hidden_dim": HIDDEN,
        "num_heads": N,
        "feed_forward_dim": F,
        "activation": activation,
        "pre_norm": pre_norm,
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
        # Padding is constant: with a small one its norm would be its rounding.
        "epsilon": 7.0,
    }


def encoder_inputs():
    mask = right_padded(LENGTHS, LENGTH)[:, None]
    return {"sequence": floats(B, LENGTH, HIDDEN), "attention_mask": mask}


def decoder_inputs():
    return encoder_inputs() | {
        "encoded": floats(B, SOURCE, ENCODED),
        "encoded_mask": right_padded([13, 7], SOURCE),
    }


ENCODER_LENGTHS = {"sequence": 1, "attention_mask": 2}
DECODER_LENGTHS = ENCODER_LENGTHS | {"encoded": 1, "encoded_mask": 1}


def stack_of(stack, block, num_layers, biased):
    if num_layers is None:
        return block
    bias = DistanceBias(N, 6, 5, stack is Encoder, stddev=0.5) if biased else None
    return stack(block, num_layers, bias)


def encoder_case(
    activation,
    pre_norm,
    num_layers=None,
    attention_window=None,
    causal=False,
    clip=None,
    biased=False,
):
    extra = {"attention_window": attention_window, "causal": causal, "relative_clip": clip}

    def make():
        block = EncoderBlock(**options(activation, pre_norm), **extra, residual_stddev=0.3)
        return stack_of(Encoder, block, num_layers, biased)

    kind = "Encoder" if num_layers else "EncoderBlock"
    causally = ", causal" * causal + told(clip, biased)
    name = f"{kind}({activation}, {pre_norm}, {attention_window}{causally})"
    past = ("sequence",) if causal else ()
    return Case(name, make, encoder_inputs, ENCODER_LENGTHS, past=past)


def told(clip, biased):
    return f"{f', clip {clip}' if clip else ''}{', biased' * biased}"


def decoder_case(
    activation,
    pre_norm,
    cross_attention,
    num_layers=None,
    attention_window=None,
    clip=None,
    biased=False,
):
    extra = {
        "cross_attention": cross_attention,
        "residual_stddev": 0.3,
        "attention_window": attention_window,
        "relative_clip": clip,
    }

    def make():
        block = DecoderBlock(**options(activation, pre_norm), **extra)
        return stack_of(Decoder, block, num_layers, biased)

    name = "Decoder" if num_layers else "DecoderBlock"
    return Case(
        f"{name}({activation}, {pre_norm}, {cross_attention}, {attention_window}"
        f"{told(clip, biased)})",
        make,
        decoder_inputs if cross_attention else encoder_inputs,
        DECODER_LENGTHS if cross_attention else ENCODER_LENGTHS,
        past=("sequence",),
    )


def two_stream_case(activation, pre_norm, num_layers=None):
    def make():
        extra = {"cross_attention": False, "relative_clip": 2, "residual_stddev": 0.3}
        block = TwoStreamBlock(**options(activation, pre_norm), **extra)
        return stack_of(TwoStreamDecoder, block, num_layers, biased=True)

    inputs = {
        "sequence": floats(B, 2 * LENGTH, HIDDEN),
        "attention_mask": floats(B, 2 * LENGTH, LENGTH) > 0,
    }
    return Case("TwoStreamDecoder" if num_layers else "TwoStreamBlock", make, lambda: inputs)


POSITIONS = [
    position_case(lambda: SinusoidalPositions(D), "SinusoidalPositions(paper)"),
    position_case(
        lambda: SinusoidalPositions(D, "tensor2tensor"), "SinusoidalPositions(tensor2tensor)"
    ),
    position_case(lambda: SinusoidalPositions(11, "marian"), "SinusoidalPositions(marian)"),
    position_case(
        lambda: LearnedPositions(17, D, stddev=0.5, first_position=2), "LearnedPositions"
    ),
]
BLOCKS = [
    encoder_case("gelu", True),
    encoder_case("gelu", False, attention_window=2),
    encoder_case("gelu", True, attention_window=2, causal=True),
    decoder_case("gelu", True, True, attention_window=3),
    decoder_case("gelu_tanh", True, True),
    decoder_case("gelu", False, False),
    two_stream_case("gelu_tanh", True),
    encoder_case("gelu", True, clip=3),
    decoder_case("gelu", True, True, clip=3),
]
ENCODERS = [
    encoder_case("gelu_tanh", True, 2),
    encoder_case("gelu_tanh", True, 2, attention_window=2),
    encoder_case("gelu", True, 2, biased=True),
    encoder_case("gelu", True, 2, attention_window=2, clip=3, biased=True),
]
DECODERS = [
    decoder_case("gelu", True, False, 2),
    decoder_case("gelu", True, False, 2, attention_window=2),
    two_stream_case("gelu", True, 2),
    decoder_case("gelu", True, False, 2, biased=True),
    decoder_case("gelu", True, True, 2, clip=3, biased=True),
    decoder_case("gelu", True, False, 2, attention_window=2, clip=1, biased=True),
]
CASES = [
    *POSITIONS,
    token_case(True),
    token_case(False),
    layer_case(lambda: LayerNorm(epsilon=1e-3), "LayerNorm"),
    layer_case(lambda: FeedForward(F, "gelu", 0.3, output_stddev=0.3), "FeedForward"),
    layer_case(
        lambda: FeedForward(F, "silu", use_bias=False, gated=True), "FeedForward(gated)", 10
    ),
    *BLOCKS,
    *ENCODERS,
    *DECODERS,
]
