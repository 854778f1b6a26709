"""Attention: scores -> weights -> context."""

from seqkeras.attention.attention import Attention
from seqkeras.attention.bi_attention import BiAttention
from seqkeras.attention.distance_bias import DistanceBias
from seqkeras.attention.hard import HardAttention, MovingAverageBaseline, reinforce_loss
from seqkeras.attention.key_value import KeyValueAttention, KeyValuePredictAttention
from seqkeras.attention.local import LocalAttention
from seqkeras.attention.multi_head import MultiHeadAttention
from seqkeras.attention.restricted import RestrictedSelfAttention
from seqkeras.attention.scores import (
    AdditiveScore,
    ConcatScore,
    DotScore,
    GeneralScore,
    ScaledDotScore,
)
from seqkeras.attention.structured import StructuredSelfAttention
from seqkeras.attention.two_stream import TwoStreamAttention
from seqkeras.masks import (
    causal_mask,
    combine_masks,
    masked_softmax,
    padding_mask,
    permutation_mask,
    prefix_mask,
    window_mask,
)

__all__ = [
    "AdditiveScore",
    "Attention",
    "BiAttention",
    "ConcatScore",
    "DistanceBias",
    "DotScore",
    "GeneralScore",
    "HardAttention",
    "KeyValueAttention",
    "KeyValuePredictAttention",
    "LocalAttention",
    "MovingAverageBaseline",
    "MultiHeadAttention",
    "RestrictedSelfAttention",
    "ScaledDotScore",
    "StructuredSelfAttention",
    "TwoStreamAttention",
    "causal_mask",
    "combine_masks",
    "masked_softmax",
    "padding_mask",
    "permutation_mask",
    "prefix_mask",
    "reinforce_loss",
    "window_mask",
]
