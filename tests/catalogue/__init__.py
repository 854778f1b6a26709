"""Every public layer and model: how to build it with arguments of its own, and a tiny input.

A file for each family. Sizes are distinct primes. `tests/properties` holds for all of it.
"""

from tests.catalogue import (
    attention,
    embeddings,
    frames,
    models,
    qrnn,
    recurrent,
    seq2seq,
    transformer,
    transformer_models,
    trees,
)
from tests.catalogue.case import Case, call

FAMILIES = [
    recurrent,
    qrnn,
    attention,
    embeddings,
    seq2seq,
    models,
    transformer,
    transformer_models,
    frames,
    trees,
]
CASES = [case for family in FAMILIES for case in family.CASES]

__all__ = ["CASES", "FAMILIES", "Case", "call"]
