"""Every public layer and model: how to build it with arguments of its own, and a tiny input.

A file for each family. Sizes are distinct primes. `tests/properties` holds for all of it.
"""

import re

import pytest

from tests.catalogue import (
    attention,
    embeddings,
    frames,
    models,
    qrnn,
    recurrent,
    seq2seq,
    seq2seq_parts,
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
    seq2seq_parts,
    models,
    transformer,
    transformer_models,
    frames,
    trees,
]
CASES = [case for family in FAMILIES for case in family.CASES]
_NAMES = {re.split(r"[(,]", case.name)[0]: case for case in reversed(CASES)}
FIRST = set(_NAMES.values())  # of each layer and model; the others are its options


def options_long(cases):
    """A test for each case; `make test` has the first of each layer and model."""
    return pytest.mark.parametrize(
        "case",
        [pytest.param(case, marks=() if case in FIRST else pytest.mark.long) for case in cases],
        ids=lambda case: case.name,
    )


__all__ = ["CASES", "FAMILIES", "FIRST", "Case", "call", "options_long"]
