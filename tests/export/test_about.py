import json

import numpy as np
import pytest

from seqkeras.export.about import MOST_BYTES, MOST_SHOWN, _shown
from tests.arrays import floats

ROW = ["-0.862", "1.248"]


@pytest.mark.parametrize(
    ("inputs", "count"),
    [
        (["short"] * 79, MOST_SHOWN),
        ([("text", "pair")] * 3, 3),
        (["x" * 1_000] * 79, 19),
        ([[ROW] * 211] * 79, 4),  # rows of a table are strings
        ([floats(211, 2)] * 79, 3),
        ([{"frames": floats(211, 2)}] * 79, 3),
        ([floats(2_003, 3)] * 79, 1),  # the first is there, unless it is very long
        ([floats(20_011, 3)] * 79, 0),
    ],
    ids=["texts", "pairs", "long texts", "rows", "arrays", "dictionaries", "long", "too long"],
)
def test_a_manifest_has_few_examples_where_these_are_long(inputs, count):
    shown = _shown(inputs, [None] * len(inputs))
    assert len(shown) == count
    assert count < 2 or len(json.dumps(shown)) < MOST_BYTES + 4 * count


def test_examples_are_of_all_labels_and_numbers_keep_their_value():
    inputs = [floats(3, 2, seed=seed).astype("float32") for seed in range(5)]
    first, second, *_ = _shown(inputs, ["a", "a", "a", "a", "b"])
    np.testing.assert_allclose([first, second], [inputs[0], inputs[4]], rtol=1e-6)
