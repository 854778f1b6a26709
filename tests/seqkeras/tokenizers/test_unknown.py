"""Unknown tokens are counted as a loop over each text's tokens counts them."""

from collections import Counter

import pytest

from seqkeras import tokenizers
from seqkeras.tokenizers.of_stream import learn_words_of_lines
from seqkeras.tokenizers.unknown import unknown_tokens
from tests.seqkeras.tokenizers.test_learn import TEXTS
from tests.seqkeras.tokenizers.test_special import marian

UNSEEN = ["the cat 7 sat", "7 7 €", "Œuvre e\u0301", "the cat", ""]


@pytest.mark.parametrize(
    "make, most_frequent",
    [
        (lambda: tokenizers.CharacterTable.learn(TEXTS), "7"),
        (lambda: tokenizers.WordTable.learn(["the", "cat", "sat", "on"]), "7"),
        (lambda: learn_words_of_lines(TEXTS, 60), "7"),
        (lambda: tokenizers.learn_word_piece(TEXTS, 150), "7"),
        (lambda: tokenizers.learn_sentence_pieces(TEXTS, 60, character_coverage=1.0), "7"),
        (marian, None),
    ],
)
def test_unknown_tokens_are_those_with_the_unknown_id(make, most_frequent):
    tokenizer = make()
    unknown_id = tokenizers.special_ids(tokenizer).unknown_id
    token_ids = [token_id for text in UNSEEN for token_id in tokenizer.encode(text)]
    found = unknown_tokens(tokenizer, iter(UNSEEN))
    assert (found.count, found.total) == (token_ids.count(unknown_id), len(token_ids))
    assert found.share == found.count / found.total > 0
    if most_frequent:
        assert found.most_frequent[0].strip() == most_frequent


def test_the_characters_of_a_table_are_composed_first():
    table = tokenizers.CharacterTable.learn(["\u00e9"])
    assert unknown_tokens(table, ["e\u0301"]).count == 0
    assert unknown_tokens(table, ["e\u0301x"]).most_frequent == ("x",)


def test_words_may_be_given_apart():
    table = tokenizers.WordTable.learn(["don't", "<pad>"])
    words = [("don't", "<unk>", "<pad>", "x", "x")]
    expected = Counter(word for word in words[0] if table.lookup(word) == tokenizers.UNK)
    found = unknown_tokens(table, words)
    assert (found.count, found.total) == (expected.total(), 5)
    assert found.most_frequent == ("x", "<unk>")


def test_no_byte_is_unknown():
    for form in ("gpt2", "roberta"):
        tokenizer = tokenizers.learn_byte_pairs(TEXTS, 300, form=form)
        assert unknown_tokens(tokenizer, ["€ never seen <unk>"]).share == 0
    assert unknown_tokens(tokenizer, []).share == 0.0
