"""The words of an encoding, beside a table to which those in JavaScript are held, too."""

import json
from pathlib import Path

import pytest

from seqkeras.serving.text import Encoding
from seqkeras.tokenizers import learn_tokenizer

WRITTEN = Path(__file__).parents[3] / "serving/javascript/test/words.json"


@pytest.mark.parametrize(
    "case", json.loads(WRITTEN.read_text("utf-8")), ids=lambda case: case["name"]
)
def test_words_are_those_of_the_text_and_tokens_where_a_script_has_no_spaces(case):
    offsets = [offset and tuple(offset) for offset in case["offsets"]]
    ids = [0] * len(offsets)
    encoding = Encoding(ids, case["tokens"], offsets, ids, case["word_ids"], (*case["texts"],))
    assert encoding.words() == [*map(tuple, case["words"])]


@pytest.mark.parametrize("kind", ["bpe", "byte-pairs", "word-piece"])
def test_words_of_a_learned_tokenizer_cover_its_text(kind):
    text = "\u6211\u5728\u5317\u4eac\u3002"
    tokenizer = learn_tokenizer(kind, [text, "in Beijing"] * 5, 400, False)
    words = tokenizer.analyze(text).words()
    assert "".join(word for word, _ in words if word[0] not in "[<") == text
    assert sum(count for _, count in words) == len(tokenizer.analyze(text))
    assert len(words) > 2
