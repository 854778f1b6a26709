"""Rows of token ids are those of `analyze`, text by text."""

import random
from types import SimpleNamespace

import pytest

from seqkeras.tokenizers import learn_byte_pairs, learn_sentence_pieces, learn_word_piece
from seqkeras.training.parts import encoded_texts
from seqkeras.training.parts.text_rows import TextRows

WORDS = ["a", "naïve", "東京", "x" * 40, "The", "cat", "[SEP]", "don't", "\u0301", "🙂", "\x1c"]


def texts_of(draw, count):
    return [" ".join(draw.choices(WORDS, k=draw.choice([1, 2, 5, 30]))) for _ in range(count)]


def run_of(tokenizer, limit, **settings):
    record = SimpleNamespace(limits={"source_length": limit}, settings=settings)
    return SimpleNamespace(tokenizers={"text": tokenizer}, record=record)


def pieces(texts, size):
    return learn_sentence_pieces(texts, size, suffix=["</s>"], hard_vocab_limit=False)


LEARNED = {
    "word-piece": learn_word_piece,
    "gpt2": learn_byte_pairs,
    "roberta": lambda texts, size: learn_byte_pairs(texts, size, form="roberta"),
    "unigram": pieces,
}


@pytest.mark.parametrize("limit, at_once", [(8, 1), (21, 7), (300, encoded_texts.AT_ONCE)])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("kind", LEARNED)
def test_rows_are_those_of_analyze(kind, pairs, limit, at_once, monkeypatch):
    monkeypatch.setattr(encoded_texts, "AT_ONCE", at_once)
    draw = random.Random(f"{kind} {limit}")
    tokenizer = LEARNED[kind](texts_of(draw, 200), 400)
    if pairs and kind == "unigram":
        pytest.skip("takes no pairs")
    texts = texts_of(draw, 150)
    if pairs:
        texts = [*zip(texts, texts_of(draw, 150))]
    rows = TextRows(run_of(tokenizer, limit, pairs=pairs))
    ids, segments, counts = rows(iter(texts))
    given = [text if pairs else (text,) for text in texts]
    expected = [tokenizer.analyze(*text, max_length=limit, truncate=True) for text in given]
    assert ids.rows() == [each.token_ids for each in expected]
    assert (segments.rows() if pairs else segments) == (
        [each.segment_ids for each in expected] if pairs else None
    )
    assert counts == [1] * len(texts)
    assert rows.cut == sum(len(tokenizer.analyze(*text)) > limit for text in given)
    assert rows([])[0].shape == (0, None)


def test_windows_are_those_of_the_tokenizer():
    draw = random.Random(0)
    tokenizer = learn_word_piece(texts_of(draw, 200), 400)
    texts = texts_of(draw, 40)
    ids, segments, counts = TextRows(run_of(tokenizer, 21, stride=5))(texts)
    windows = [tokenizer.windows(None, text, 21, 5) for text in texts]
    assert counts == [*map(len, windows)] and segments is None
    assert ids.rows() == [each.token_ids for of_text in windows for each in of_text]
