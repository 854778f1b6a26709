"""The tokenizer of damaged text: T5's form, whose answers show sentinels."""

import random

import numpy as np
import pytest

from seqkeras.data.denoising import span_corruption
from seqkeras.serving.text.sentence_pieces import SPACE
from seqkeras.tokenizers import (
    BOS,
    EOS,
    PAD,
    UNK,
    Subwords,
    learn_sentence_pieces,
    learn_t5_pieces,
    sentinel_ids,
    special_ids,
    with_sentinels,
    word_piece,
)

WORDS = "the walk walks walked talking old in , . ! ? < / > s va-t-elle à Où 我们 去 3".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]


def lines(count, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 17))) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizer():
    return learn_t5_pieces(lines(200), 55)


def test_it_has_the_pieces_of_sentencepiece_and_gives_texts_back(tokenizer):
    library = learn_sentence_pieces(lines(200), 55, rules={"\t": " "}, character_coverage=1.0)
    texts = lines(300, seed=1)
    # "<" stands alone here, so that no "</s>" is read.
    plain = [text for text in texts if "<" not in text]
    assert tokenizer.encode_all(plain) == library.encode_all(plain) and len(plain) > 100
    for text in texts:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(" the \t old\n")) == "the old"


def test_its_special_tokens_are_those_of_every_learned_tokenizer(tokenizer):
    ids = special_ids(tokenizer)
    assert (ids.padding_id, ids.unknown_id, ids.start_id, ids.end_id) == (PAD, UNK, BOS, EOS)
    assert tokenizer.analyze("the old").token_ids == [*tokenizer.encode("the old"), EOS]
    assert not {PAD, BOS, EOS} & {*tokenizer.encode("</s> <s> / s > s")}
    assert Subwords(tokenizer.to_json()) == tokenizer


def test_sentinels_are_read_and_written_and_absorb_the_space_before(tokenizer):
    ids = sentinel_ids(tokenizer)
    assert len(set(ids)) == 100
    the, old = tokenizer.encode("the"), tokenizer.encode("old")
    expected = [*the, ids[0], *old, ids[11]]
    assert tokenizer.encode("the <extra_id_0> old  <extra_id_11>") == expected
    assert tokenizer.decode(expected) == "the<extra_id_0> old<extra_id_11>"
    assert tokenizer.encode("the<extra_id_0> old<extra_id_11>") == expected
    assert tokenizer.decode([*the, tokenizer.id_of("<mask>")]) == "the"


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_text_is_read_as_it_was_damaged(tokenizer, seed):
    generator = np.random.default_rng(seed)
    rows = tokenizer.encode_all(lines(100, seed))
    lengths = np.array([*map(len, rows)])
    token_ids = np.zeros((100, lengths.max()), int)
    for place, row in zip(token_ids, rows, strict=True):
        place[: len(row)] = row
    damaged = span_corruption(token_ids, lengths, sentinel_ids(tokenizer), generator)
    space, ids = tokenizer.id_of(SPACE), {*sentinel_ids(tokenizer)}
    for row, length in zip(damaged.sources, damaged.source_lengths, strict=True):
        row = row[:length].tolist()
        absorbed = [place for place, pair in enumerate(zip(row, row[1:])) if pair[1] in ids]
        read = [token for place, token in enumerate(row) if token != space or place not in absorbed]
        assert tokenizer.encode(tokenizer.decode(row)) == read


def test_capitals_are_small_letters_where_that_is_asked_for():
    tokenizer = learn_t5_pieces(["The Old House", "THE HOUSE"], 40, lowercase=True)
    assert tokenizer.decode(tokenizer.encode("the OLD House")) == "the old house"
    assert UNK not in tokenizer.encode("OLD THE")


def test_tokens_that_a_vocabulary_has_keep_their_ids():
    known = word_piece([*VOCABULARY, "<extra_id_1>"], in_texts=["[MASK]", "<extra_id_1>"])
    changed = with_sentinels(known)
    assert changed.id_of("<extra_id_1>") == 8 and changed.id_of("<extra_id_0>") == 9
    assert len(changed) == 8 + 100 and with_sentinels(changed) == changed
    text = "the <extra_id_1> cat [MASK] sat"
    assert changed.encode(text) == [5, 8, 6, 4, 7]
    assert changed.decode([5, 8, 6]) == "the <extra_id_1> cat"
