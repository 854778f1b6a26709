"""Scores and the attentions made of them."""

import numpy as np

from seqkeras.attention import AdditiveScore, Attention
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S, T, U


def attention_inputs():
    return {
        "query": floats(B, T, D),
        "key": floats(B, S, U),
        "value": floats(B, S, 13),
        "attention_mask": np.stack([right_padded([5, 2, 1], S), right_padded([3, 4, 5], S)]),
    }


def score_inputs():
    return {"query": floats(B, T, D), "key": floats(B, S, U)}


SCORES = [
    Case("AdditiveScore", lambda: AdditiveScore(13), score_inputs, {"query": 1, "key": 1}),
]
# These return context and weights, and take query, key, value and attention_mask.
ATTENTIONS = [
    Case(
        "Attention(AdditiveScore)",
        lambda: Attention(AdditiveScore(17)),
        attention_inputs,
        {"key": 1, "value": 1, "attention_mask": 2},
        mask="attention_mask",
    ),
]
CASES = [*SCORES, *ATTENTIONS]
