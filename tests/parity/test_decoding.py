"""Beside Hugging Face's transformers, at the size of a real vocabulary."""

import numpy as np
import pytest

from seqkeras.decoding import BannedTokens, MinLength, RepetitionPenalty, Temperature, TopK, TopP
from tests.arrays import close
from tests.seqkeras.decoding.toys import TABLE_SEARCHES, process, search_table
from tests.vectors import decoding as hugging_face

pytest.importorskip("transformers", reason="transformers is in requirements-parity.txt")
VOCAB_SIZE, ROWS, MAX_LENGTH = 32_003, 7, 23


def test_processors_at_the_size_of_a_real_vocabulary():
    from transformers.generation import logits_process

    random = np.random.default_rng(1)
    logits = random.normal(0, 3, (ROWS, VOCAB_SIZE)).astype("float32")
    token_ids = random.integers(0, VOCAB_SIZE, (ROWS, MAX_LENGTH))
    banned = random.permutation(VOCAB_SIZE)[:1009].tolist()
    pairs = [
        (Temperature(1.3), logits_process.TemperatureLogitsWarper(1.3)),
        (TopK(50), logits_process.TopKLogitsWarper(50)),
        (TopP(0.95), logits_process.TopPLogitsWarper(0.95)),
        (RepetitionPenalty(1.2), logits_process.RepetitionPenaltyLogitsProcessor(1.2)),
        (BannedTokens(banned), logits_process.SuppressTokensLogitsProcessor(banned, "cpu")),
        (MinLength(30, 3), logits_process.MinLengthLogitsProcessor(30, 3, "cpu")),
    ]
    for ours, theirs in pairs:
        expected = hugging_face.processed(theirs, token_ids, logits)
        processed = process(ours, logits[:, None], token_ids[:, None], MAX_LENGTH)
        close(processed[:, 0], expected)


@pytest.mark.parametrize("name", TABLE_SEARCHES)
def test_searches_at_the_size_of_a_real_vocabulary(name):
    random = np.random.default_rng(2)
    table = random.normal(0, 3, (hugging_face.PLACES, VOCAB_SIZE)).astype("float32")
    table[:, hugging_face.EOS] += 9
    prompts = random.integers(4, VOCAB_SIZE, (ROWS, 3 if name == "prompt" else 1))
    expected_ids, expected_scores = hugging_face.searched(
        table, prompts, MAX_LENGTH, **hugging_face.SEARCHES[name]
    )
    token_ids, scores = search_table(name, table, prompts, MAX_LENGTH)
    np.testing.assert_array_equal(token_ids, expected_ids)
    close(scores, expected_scores)
