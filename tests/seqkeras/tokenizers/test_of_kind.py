"""Tokenizers by the names of their kinds: one set of ids, whatever the kind."""

import pytest

from seqkeras.tokenizers import (
    BOS,
    EOS,
    PAD,
    TOKENIZERS,
    UNK,
    encode_all,
    learn_tokenizer,
    special_ids,
)
from tests.seqkeras.tokenizers.test_learn import TEXTS
from tests.seqkeras.tokenizers.texts import special_texts

EXACT = ["unigram", "bpe", "byte-pairs", "characters"]
MASK = 4  # the id behind those four
FOLDED = [kind for kind in TOKENIZERS if kind not in ("byte-pairs", "characters")]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_special_tokens_have_the_same_ids_in_every_kind(kind):
    ids = special_ids(learn_tokenizer(kind, TEXTS, 300))
    assert (ids.padding_id, ids.unknown_id, ids.start_id, ids.end_id) == (PAD, UNK, BOS, EOS)


@pytest.mark.parametrize("kind", EXACT)
def test_a_text_is_given_back_as_it_was_written(kind):
    texts = [*TEXTS, "¡Qué ﬁn… ½ （），！"]  # which NFKC would write otherwise
    tokenizer = learn_tokenizer(kind, texts, 500)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_special_token_that_is_written_in_a_text_is_text(kind):
    texts = [*special_texts()]
    tokenizer = learn_tokenizer(kind, [*TEXTS, *texts], 600)
    special = {PAD, UNK, BOS, EOS}
    special |= {MASK} if kind in ("word-piece", "byte-pairs") else set()
    for text in texts:
        token_ids = tokenizer.encode(text)
        assert not special & {*token_ids}, text
        assert encode_all(tokenizer, [text]) == [token_ids]
        if kind in EXACT:
            assert tokenizer.decode(token_ids) == text
        if kind == "word-piece":
            assert tokenizer.decode(token_ids).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("kind", FOLDED)
def test_capitals_are_read_as_small_letters_and_accents_as_they_are(kind):
    tokenizer = learn_tokenizer(kind, [text.lower() for text in 2 * TEXTS], 300, lowercase=True)
    text = "Über Den Wolken"
    assert tokenizer.decode(tokenizer.encode(text)) == text.lower()
    assert learn_tokenizer(kind, TEXTS, 300).encode(text) != tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_tab_is_read_as_a_space(kind):
    tokenizer = learn_tokenizer(kind, TEXTS, 300)
    assert tokenizer.encode("the\tcat\n") == tokenizer.encode("the cat")


def test_words_are_the_most_frequent_ones():
    tokenizer = learn_tokenizer("words", ["b a b", "a c b"], 6)
    assert tokenizer.words == ("<pad>", "<unk>", "<bos>", "<eos>", "b", "a")
    assert tokenizer.encode("a c b") == [5, UNK, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("syllables", TEXTS, 300), "kind must be one of unigram, bpe, .*; received 'syllables'"),
        (("characters", TEXTS, 300, True), "characters keep their case; write the texts in lower"),
        (("words", TEXTS, 4), "learn_words: vocab_size must be at least 5"),
        (("byte-pairs", TEXTS, 260), "learn_byte_pairs: vocab_size must be at least 261"),
    ],
)
def test_what_can_not_be_learned_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        learn_tokenizer(*arguments)
