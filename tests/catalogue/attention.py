"""Scores and the attentions made of them."""

import numpy as np

from seqkeras.attention import (
    AdditiveScore,
    Attention,
    BiAttention,
    ConcatScore,
    DistanceBias,
    DotScore,
    GeneralScore,
    HardAttention,
    KeyValueAttention,
    KeyValuePredictAttention,
    LocalAttention,
    MovingAverageBaseline,
    MultiHeadAttention,
    RestrictedSelfAttention,
    ScaledDotScore,
    StructuredSelfAttention,
    TwoStreamAttention,
)
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S, T, U

LENGTHS = {"key": 1, "value": 1, "attention_mask": 2}


def score_inputs(key_dim=U):
    return {"query": floats(B, T, D), "key": floats(B, S, key_dim)}


def attention_inputs(key_dim=U):
    return {
        **score_inputs(key_dim),
        "value": floats(B, S, 13),
        "attention_mask": np.stack([right_padded([5, 2, 1], S), right_padded([3, 4, 5], S)]),
    }


def same_dim_inputs():
    return attention_inputs(key_dim=D)


def positioned_inputs():
    return attention_inputs() | {"positions": np.array([[3, 0, 2], [1, 4, 2]], "int32")}


def padding_inputs():
    """One mask of the real keys for every query, as local attention wants it."""
    mask = np.repeat(right_padded([5, 3], S)[:, None], T, axis=1)
    return attention_inputs() | {"attention_mask": mask}


def self_inputs(dim):
    return lambda: {"sequence": floats(B, S, dim), "mask": right_padded([5, 3], S)}


def same_length_inputs():
    return {name: floats(B, S, dim) for name, dim in (("query", D), ("key", U), ("value", 13))}


def bi_attention_inputs():
    return {
        "context": floats(B, S, D),
        "query": floats(B, T, D),
        "context_mask": right_padded([5, 3], S),
        "query_mask": right_padded([2, 3], T),
    }


def attention_case(name, make, inputs=attention_inputs, **options):
    return Case(name, make, inputs, LENGTHS, mask="attention_mask", **options)


def self_case(name, make, dim=D):
    lengths = {"sequence": 1, "mask": 1}
    return Case(name, make, self_inputs(dim), lengths, mask="mask", past=("sequence",))


# Products of float16 overflow at 65,504: a score passes that on, an attention does not.
SCORES = [
    Case("AdditiveScore", lambda: AdditiveScore(13), score_inputs, {"query": 1, "key": 1}),
    Case("ConcatScore", lambda: ConcatScore(13), score_inputs, {"query": 1, "key": 1}),
    Case("GeneralScore", GeneralScore, score_inputs, {"query": 1, "key": 1}, scale=30),
    Case("DotScore", DotScore, lambda: score_inputs(D), {"query": 1, "key": 1}, scale=30),
    Case("ScaledDotScore", ScaledDotScore, lambda: score_inputs(D), {"query": 1}, scale=30),
]
# These return context and weights that sum to one, and take query, key, value and attention_mask.
ATTENTIONS = [
    attention_case("Attention(AdditiveScore)", lambda: Attention(AdditiveScore(17))),
    attention_case("Attention(ConcatScore)", lambda: Attention(ConcatScore(17))),
    attention_case("Attention(GeneralScore)", lambda: Attention(GeneralScore())),
    attention_case("Attention(DotScore)", lambda: Attention(DotScore()), same_dim_inputs),
    attention_case(
        "Attention(ScaledDotScore)", lambda: Attention(ScaledDotScore()), same_dim_inputs
    ),
    attention_case(
        "HardAttention(DotScore)", lambda: HardAttention(DotScore(), seed=3), same_dim_inputs
    ),
]
LOCAL = [
    attention_case(
        "LocalAttention(monotonic)",
        lambda: LocalAttention(AdditiveScore(17), window=1),
        positioned_inputs,
    ),
    attention_case(
        "LocalAttention(predictive)",
        lambda: LocalAttention(GeneralScore(), window=2, kind="predictive"),
        padding_inputs,
    ),
]
PAST = [
    self_case("KeyValueAttention", lambda: KeyValueAttention(3), dim=2 * U),
    self_case("KeyValuePredictAttention", lambda: KeyValuePredictAttention(2), dim=3 * U),
]
MULTI_HEAD = [
    attention_case(
        "MultiHeadAttention",
        lambda: MultiHeadAttention(13, 2, output_dim=17, use_bias=False, dropout=0.3, seed=3),
    ),
    Case(
        "MultiHeadAttention(causal)",
        lambda: MultiHeadAttention(13, 2, causal=True, output_stddev=0.3),
        same_length_inputs,
        past=("query", "key", "value"),
    ),
    Case(
        "MultiHeadAttention(clip)",
        lambda: MultiHeadAttention(13, 2, causal=True, relative_clip=2),
        same_length_inputs,
        past=("query", "key", "value"),
    ),
]
RESTRICTED = [
    self_case(
        "RestrictedSelfAttention(causal)",
        lambda: RestrictedSelfAttention(13, 3, window=2, causal=True, use_bias=False),
    ),
    Case(
        "RestrictedSelfAttention",
        lambda: RestrictedSelfAttention(13, 3, window=2, output_dim=17, dropout=0.3, seed=3),
        self_inputs(D),
        {"sequence": 1, "mask": 1},
    ),
    self_case(
        "RestrictedSelfAttention(causal, clip)",
        lambda: RestrictedSelfAttention(
            13, 3, window=2, causal=True, use_bias=False, relative_clip=1
        ),
    ),
]
OTHERS = [
    Case(
        "BiAttention",
        BiAttention,
        bi_attention_inputs,
        {"context": 1, "query": 1, "context_mask": 1, "query_mask": 1},
        mask="context_mask",
        scale=100,
    ),
    Case(
        "StructuredSelfAttention",
        lambda: StructuredSelfAttention(13, 3, penalty=0.7),
        self_inputs(D),
        {"sequence": 1, "mask": 1},
        mask="mask",
    ),
    Case(
        "TwoStreamAttention",
        lambda: TwoStreamAttention(13, 2, output_dim=17, use_bias=False, dropout=0.3, seed=3),
        lambda: {"streams": floats(B, 2 * S, D), "attention_mask": floats(B, 2 * S, S) > 0},
    ),
    Case(
        "TwoStreamAttention(causal)",
        lambda: TwoStreamAttention(13, 2, causal=True, output_stddev=0.3, relative_clip=2),
        lambda: {"streams": floats(B, 2 * S, D)},
    ),
    Case(
        "DistanceBias",
        lambda: DistanceBias(3, 8, 7, stddev=0.5),
        lambda: {"distances": np.array([[0, 3, -9, 17], [-1, 5, 7, -4]])},
        {"distances": 1},
        past=("distances",),
    ),
    Case(
        "DistanceBias(causal)",
        lambda: DistanceBias(3, 8, 7, bidirectional=False),
        lambda: {"distances": np.array([[0, 3, -9, 17], [1, 5, 7, -4]])},
        {"distances": 1},
        past=("distances",),
    ),
    Case(
        "MovingAverageBaseline",
        lambda: MovingAverageBaseline(momentum=0.7),
        lambda: {"losses": floats(B)},
    ),
]
CASES = [*SCORES, *ATTENTIONS, *LOCAL, *PAST, *MULTI_HEAD, *RESTRICTED, *OTHERS]
