"""Decoding: from a decoder's step to token ids."""

from seqkeras.decoding.greedy import greedy
from seqkeras.decoding.loop import StateEntry, generate
from seqkeras.decoding.rows import in_batches

__all__ = ["StateEntry", "generate", "greedy", "in_batches"]
