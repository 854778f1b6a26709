"""Decoding: from a decoder's step to token ids."""

from seqkeras.decoding.beam import beam
from seqkeras.decoding.compiled import compiled
from seqkeras.decoding.constraint import Constraint
from seqkeras.decoding.greedy import greedy
from seqkeras.decoding.loop import Search, StateEntry, decode, generate
from seqkeras.decoding.processors import (
    BannedTokens,
    ForcedToken,
    MinLength,
    Prefix,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from seqkeras.decoding.rows import in_batches
from seqkeras.decoding.sampling import sample
from seqkeras.decoding.spans import best_spans

__all__ = [
    "BannedTokens",
    "Constraint",
    "ForcedToken",
    "MinLength",
    "Prefix",
    "RepetitionPenalty",
    "Search",
    "StateEntry",
    "Temperature",
    "TopK",
    "TopP",
    "beam",
    "best_spans",
    "compiled",
    "decode",
    "generate",
    "greedy",
    "in_batches",
    "sample",
]
