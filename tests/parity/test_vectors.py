import numpy as np
import pytest

from tests import vectors
from tests.parity.conftest import needs

NEEDS = {"decoding": "transformers", "pretrained": "sentence_transformers"}


@pytest.mark.parametrize(
    "family",
    [pytest.param(family, marks=needs(NEEDS.get(family, "torch"))) for family in vectors.FAMILIES],
)
def test_the_stored_vectors_are_what_the_rival_says_today(family):
    stored, today = vectors.load(family), vectors.make(family)
    assert stored.keys() == today.keys()
    for name, expected in today.items():
        assert stored[name].dtype == expected.dtype, name
        np.testing.assert_allclose(stored[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)
