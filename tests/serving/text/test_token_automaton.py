"""Tokens that an automaton allows, beside the text that the tokenizer makes of them."""

import itertools
import random
import re

import numpy as np
import pytest

from seqkeras.serving.text import (
    CharacterTable,
    Pattern,
    SentencePieces,
    TokenAutomaton,
    WordTable,
    text_trees,
    token_texts,
    word_piece,
)
from seqkeras.serving.text.token_automaton import TextTree
from seqkeras.tokenizers import learn_byte_pairs
from tests.serving.pipelines import toys

TEXTS = ["the cat sat on the mat, 2014-05-03", "a dog and a cat!", "führer día 12:30 €", "x?y"]


def sentence_pieces(**options):
    return toys.sentence_pieces(TEXTS, ends=False, **{"vocab_size": 90} | options)


def marian():
    pieces = sentence_pieces()
    vocabulary = {"</s>": 0, "<unk>": 1, "<pad>": 9, "▁the": 2, "▁cat": 3, "▁": 4, "s": 5, "é": 7}
    return SentencePieces(pieces.model, vocabulary)


WORDS = "[PAD] [UNK] [CLS] [SEP] the cat ##s sat , . ' n't ##' don ? 'm !x 日 x ##日".split()
TOKENIZERS = {
    "characters": lambda: CharacterTable.learn(["abc 日2014-"]),
    "words": lambda: WordTable.learn(["the", "cat", "日", ",", "c"]),
    "word piece": lambda: word_piece(WORDS),
    "byte level": lambda: learn_byte_pairs(TEXTS, 300),
    "bytes of gpt-2": toys.of_bytes,
    "byte fallback": toys.with_byte_fallback,
    "sentence pieces": sentence_pieces,
    "sentence pieces of bytes": lambda: sentence_pieces(byte_fallback=True, vocab_size=400),
    "sentence pieces of a unigram model": lambda: sentence_pieces(
        model_type="unigram", vocab_size=60
    ),
    "marian": marian,
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]()


def test_a_text_is_what_its_tokens_add(tokenizer):
    first, later = token_texts(tokenizer)
    drawn = random.Random(0)
    begins = [place for place, text in enumerate(first) if text]
    others = [place for place, text in enumerate(later) if text]
    assert len(first) == len(later) == len(tokenizer)
    assert len(others) >= 5
    for _ in range(2000):
        token_ids = [drawn.choice(begins), *drawn.choices(others, k=drawn.randrange(5))]
        added = first[token_ids[0]] + b"".join(later[each] for each in token_ids[1:])
        try:
            text = added.decode()
        except UnicodeDecodeError:  # no text: a pattern allows none of it
            continue
        assert tokenizer.decode(token_ids) == text, [*map(tokenizer.token_of, token_ids)]


def automaton_of(pattern, tokenizer, end_id=None):
    end_id = len(tokenizer) if end_id is None else end_id
    return TokenAutomaton(pattern, text_trees(tokenizer), end_id, len(tokenizer) + 1)


def targets(automaton, most):
    """All token ids that an automaton allows up to <eos>, by trying each."""
    found, begun = [], [((), automaton.first)]
    for length in range(most):
        following = []
        for token_ids, state in begun:
            for token in np.flatnonzero(automaton.allowed(state, most - length)):
                there = automaton.advance(np.array(state), np.array(token))
                if token == automaton.end_id:
                    found.append(token_ids)
                else:
                    following.append(((*token_ids, int(token)), int(there)))
        begun = following
    return found


def test_what_is_allowed_is_what_decodes_to_a_match(tokenizer):
    expression = r"(the )?(c|cat|a|日)+,?"
    automaton = automaton_of(Pattern.of_expression(expression), tokenizer)
    found = set(targets(automaton, 4))
    texts = [tokenizer.decode(token_ids) for token_ids in found]
    assert found and all(re.fullmatch(expression, text) for text in texts)
    # All others, of tokens that can be part of such a text.
    first, later = token_texts(tokenizer)
    some = [
        place
        for place, text in enumerate(zip(first, later))
        if any(each and set(each) <= set("the ca日,".encode()) for each in text)
    ]
    expected = set()
    for length in (1, 2, 3):
        for token_ids in itertools.product(some[:14], repeat=length):
            writes = first[token_ids[0]] and all(later[each] for each in token_ids[1:])
            if writes and re.fullmatch(expression, tokenizer.decode(token_ids)):
                expected.add(token_ids)
    assert {each for each in found if set(each) <= set(some[:14])} == expected


def test_a_large_vocabulary_gives_up_rows_that_it_keeps(monkeypatch):
    from seqkeras.serving.text import token_automaton

    tokenizer = TOKENIZERS["byte level"]()
    automaton = automaton_of(Pattern.of_expression("[a-z ]{7}"), tokenizer)
    states = np.arange(len(automaton.distances))
    expected = automaton.next_states(states)
    monkeypatch.setattr(token_automaton, "MOST_AT_ONCE", 3 * automaton.vocab_size)
    again = automaton_of(Pattern.of_expression("[a-z ]{7}"), tokenizer)
    np.testing.assert_array_equal(again.next_states(states), expected)
    assert len(again._rows) <= 4


def test_what_a_vocabulary_makes_too_large_is_refused():
    texts = [str(token).encode() for token in range(200_000)]
    tree = TextTree(texts)
    assert tree.sizes.sum() == len({text[: k + 1] for text in texts for k in range(len(text))})
    message = (
        r"^regex or choices: 8,001 states are too many for a vocabulary of 200,000 tokens: repeat "
        r"less, or allow fewer characters\.$"
    )
    with pytest.raises(ValueError, match=message):
        TokenAutomaton(Pattern.of_expression(".{0,1000}"), (tree, tree), 0, 200_000)
