"""Attention in half precision over 2,048 positions: many small weights, and their sum."""

import numpy as np
import pytest
from keras import ops

from seqkeras import composites
from tests import references
from tests.arrays import floats, numbers, right_padded
from tests.conftest import others_long

LENGTH = 2048
SOME = [*range(0, LENGTH, 61), 1801]  # queries: loops over all of them take long
MASK = right_padded([1801], LENGTH)[:, None]  # (B, 1, S)


def expected(query, key, value, causal, masked):
    """The formula of some queries in float64, by the same rounded numbers; B = N = 1."""
    seen = np.tri(LENGTH, dtype=bool) if causal else np.ones((LENGTH, LENGTH), bool)
    seen = (seen & MASK if masked else seen[None])[:, SOME]
    query, key, value = (each[0].astype("float64") for each in (query, key, value))
    scores = references.scaled_dot_score(query[:, SOME], key)
    return references.attention(scores, value, seen)[0]


@pytest.mark.parametrize(
    "dtype, size, limit",
    # Where scores are of ordinary size, what remains is the rounding of the output; where they are
    # in the hundreds, that of the scores themselves: they are in half precision too.
    others_long([("float16", 1, 1e-3), ("float16", 30, 0.02), ("bfloat16", 1, 8e-3)]),
)
@pytest.mark.parametrize(
    "causal, masked",
    [(False, False), (True, False), (False, True)],
    ids=["whole", "causal", "masked"],
)
def test_long_attention_in_half_precision_is_near_the_formula(dtype, size, limit, causal, masked):
    tensors = [size * floats(1, 1, LENGTH, 64), floats(1, 1, LENGTH, 64, seed=1)]
    tensors.append(1 + floats(1, 1, LENGTH, 64, seed=2))  # whose sum is far from zero
    halves = [ops.cast(each, dtype) for each in tensors]
    rounded = [numbers(ops.cast(each, "float32")) for each in halves]
    mask = MASK[:, None] if masked else None
    actual = composites.attention(*halves, mask, causal=causal)
    assert dtype in str(actual.dtype)
    actual = numbers(ops.cast(actual, "float32"))[0][:, SOME]
    correct = expected(*rounded, causal, masked)
    assert np.abs(actual - correct).max() / np.abs(correct).max() < limit
