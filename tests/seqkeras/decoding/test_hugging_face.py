import numpy as np
import pytest

from tests import vectors
from tests.arrays import close
from tests.seqkeras.decoding.toys import TABLE_SEARCHES, search_table


@pytest.mark.parametrize("name", TABLE_SEARCHES)
def test_searches_are_those_of_hugging_face(name):
    stored = vectors.load("decoding")
    expected_ids = stored[f"beam/{name}/token_ids"]
    prompts = stored["prompts"][:, : 3 if name == "prompt" else 1]
    token_ids, scores = search_table(name, stored["table"], prompts, expected_ids.shape[-1])
    np.testing.assert_array_equal(token_ids, expected_ids)
    close(scores, stored[f"beam/{name}/scores"])
