"""Sentences that are read word by word have the tokens and targets of whole sentences."""

import random
from types import SimpleNamespace

import pytest

from seqkeras.tokenizers import learn_byte_pairs, learn_word_piece
from seqkeras.training.parts import encoded_texts, tagged_rows
from seqkeras.training.parts.read_words import read_words_and_parts
from seqkeras.training.parts.tagged_rows import NO_TAG, TaggedRows
from seqkeras.training.parts.tagged_sentences import Example

LABELS = ["B-a", "B-b", "I-a", "I-b", "O"]
# Marks, joiners, flags, a family, kana, Thai, Hangul, both sigmas, a soft hyphen, a ligature.
CHARACTERS = [
    *"abAB.-'’#é中文か",
    *"\u0301\u200d\U0001f1e6\U0001f469\U0001f3fd゙กำ\uac00\u11a8Σς\xadﬁ",
]
SPECIAL = ["[MASK]", "[SEP]", "[UNK]", "x[MASK]y", "\u0301\u0301", "\u200d"]


def word_of(draw):
    if draw.random() < 0.1:
        return draw.choice(SPECIAL)
    return "".join(draw.choices(CHARACTERS, k=draw.choice([1, 1, 2, 3, 8])))


def examples_of(draw, count):
    sizes = [draw.randint(1, 9) for _ in range(count)]
    return [
        Example(
            tuple(word_of(draw) for _ in range(size)),
            tuple(draw.choices(LABELS, k=size)),
        )
        for size in sizes
    ]


def run_of(tokenizer, scheme, limit):
    record = SimpleNamespace(
        limits={"source_length": limit}, settings={"labels": LABELS, "scheme": scheme}
    )
    return SimpleNamespace(tokenizers={"text": tokenizer}, record=record)


@pytest.mark.parametrize("limit", [3, 6, 256])
@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", None])
@pytest.mark.parametrize("learn", [learn_word_piece, learn_byte_pairs])
def test_words_have_the_tokens_that_they_have_in_their_sentence(learn, scheme, limit):
    draw = random.Random(f"{scheme} {limit}")
    texts = [" ".join(example.text) for example in examples_of(draw, 60)]
    run = run_of(learn(texts, 400), scheme, limit)
    examples = examples_of(draw, 100)
    token_ids, targets = TaggedRows(run)(examples)
    for example, ids, indices in zip(examples, token_ids.rows(), targets.rows(), strict=True):
        read, parts = read_words_and_parts(run, example.text)
        expected, numbers = [NO_TAG] * len(ids), []
        for number, token in parts if scheme != "IOBES" else ():
            tag = example.target[number]
            inside = scheme == "IOB2" and number in numbers and tag != "O"
            expected[token] = LABELS.index(f"I-{tag[2:]}" if inside else tag)
            numbers.append(number)
        for number, token in zip(read.numbers, read.first_tokens, strict=True):
            expected[token] = LABELS.index(example.target[number])
        whole = run.tokenizers["text"].analyze(" ".join(example.text), None, limit, truncate=True)
        assert (ids, indices) == (whole.token_ids, expected), example


def test_words_that_are_forgotten_are_read_anew(monkeypatch):
    draw = random.Random(0)
    examples = examples_of(draw, 100)
    run = run_of(learn_word_piece([" ".join(example.text) for example in examples], 400), None, 256)
    token_ids, targets = TaggedRows(run)(examples)
    monkeypatch.setattr(encoded_texts, "AT_ONCE", 7)
    monkeypatch.setattr(tagged_rows, "MOST_PARTS", 30)
    others, other_targets = TaggedRows(run)(examples)
    assert (others.rows(), other_targets.rows()) == (token_ids.rows(), targets.rows())


def test_sentences_that_lose_words_are_counted():
    rows = TaggedRows(run_of(learn_word_piece(["a b c"], 50), None, 4))
    words = [("a",), ("a", "b"), ("a", "b", "c")]
    token_ids, _ = rows([Example(text, ("O",) * len(text)) for text in words])
    assert rows.cut == 1
    assert token_ids.lengths.tolist() == [3, 4, 4]
