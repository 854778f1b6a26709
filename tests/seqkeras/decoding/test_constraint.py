"""Constrained results beside a search through all texts."""

import itertools
import re

import numpy as np
import pytest
from keras import ops

from seqkeras import decoding
from seqkeras.decoding import Constraint
from seqkeras.tokenizers import CharacterTable, WordTable
from tests.arrays import close
from tests.conftest import others_long
from tests.references.decoding import log_softmax
from tests.seqkeras.decoding.toys import BOS, EOS, Automaton

TABLE = CharacterTable.learn(["abc"])
T, B = 6, 5
REGEX = "(ab|c){1,3}|b+"


def log_probs(decoder, row, token_ids):
    return log_softmax(decoder.logits(row, [BOS, *token_ids]))


def score(decoder, row, text):
    ids = [*TABLE.encode(text), EOS]
    return sum(log_probs(decoder, row, ids[:t])[token] for t, token in enumerate(ids))


ALL = ["".join(text) for length in range(T) for text in itertools.product("abc", repeat=length)]
TEXTS = [text for text in ALL if re.fullmatch(REGEX, text)]


def constrained(function, decoder, constraint=REGEX, **options):
    if isinstance(constraint, str):
        constraint = Constraint.of_regex(constraint, TABLE, EOS)
    options |= {"start_id": BOS, "end_id": EOS, "max_length": T, "constraint": constraint}
    entries = decoder.state_entries
    return function(decoder.step, decoder.initial_state, state_entries=entries, **options)


def texts_of(token_ids):
    return [TABLE.decode(row) for row in ops.convert_to_numpy(token_ids)]


@pytest.mark.parametrize("seed", others_long(range(2)))
def test_a_beam_of_all_finds_the_most_probable_text_that_matches(seed):
    decoder = Automaton(seed)
    token_ids, _, scores = constrained(decoding.beam, decoder, num_beams=23, n_best=3)
    for row in range(B):
        found = ((score(decoder, row, text), text) for text in TEXTS)
        expected = sorted(found, reverse=True)[:3]
        assert texts_of(token_ids[row]) == [text for _, text in expected]
        close(scores[row], np.array([score for score, _ in expected]), rtol=1e-4)


@pytest.mark.parametrize("regex", [REGEX, "(?s:.*)", "(abc)*"])
def test_greedy_takes_the_best_token_that_some_text_goes_on_with(regex):
    decoder = Automaton(5)
    token_ids, _, scores = constrained(decoding.greedy, decoder, regex)
    texts = [text for text in ALL if re.fullmatch(regex, text)]
    for row, found in enumerate(texts_of(token_ids)):
        written = []
        while written[-1:] != [EOS]:
            begun = TABLE.decode(written)
            rest = [text[len(begun) :] for text in texts if text.startswith(begun)]
            allowed = {[*TABLE.encode(text), EOS][0] for text in rest}
            written.append(max(allowed, key=log_probs(decoder, row, written).__getitem__))
        assert found == TABLE.decode(written)
        close(scores[row], score(decoder, row, found), rtol=1e-4)


def test_what_is_drawn_matches_and_is_as_frequent_as_the_model_says():
    decoder = Automaton(7, sources=1)
    decoder.table, decoder.weights = (
        np.repeat(each, 700, axis=0) for each in (decoder.table, decoder.weights)
    )
    decoder.sources = 700
    texts = texts_of(constrained(decoding.sample, decoder, "a|b|ca", seed=1)[0])
    first = np.exp(log_probs(decoder, 0, []))[[TABLE.id_of(each) for each in "abc"]]
    drawn = [texts.count(text) / len(texts) for text in ("a", "b", "ca")]
    np.testing.assert_allclose(drawn, first / first.sum(), atol=0.06)


def test_a_constraint_comes_before_processors():
    token_ids, _, scores = constrained(
        decoding.sample, Automaton(2), top_k=1, temperature=0.5, seed=1
    )
    greedy_ids, _, greedy_scores = constrained(decoding.greedy, Automaton(2))
    assert texts_of(token_ids) == texts_of(greedy_ids)
    # A sure choice among what is allowed costs what is not allowed alone.
    assert (ops.convert_to_numpy(scores) >= ops.convert_to_numpy(greedy_scores) - 1e-5).all()


def test_a_prompt_is_not_constrained_and_what_is_behind_it_is():
    prompt = np.array([[4, 6], [5, 5], [6, 4], [6, 6], [4, 4]]), np.array([2, 1, 0, 1, 2])
    token_ids, lengths, _ = constrained(decoding.greedy, Automaton(3), "(ab|c)+", prompt=prompt)
    for row, begin, text in zip(prompt[0], prompt[1], texts_of(token_ids)):
        assert text.startswith(TABLE.decode(row[:begin]))
        assert re.fullmatch("(ab|c)+", text[begin:])


def test_a_word_at_the_begin_of_a_text_has_no_space_and_one_behind_a_prompt_has():
    words = WordTable(["<pad>", "<unk>", "no", "yes"])
    constraint = Constraint.of_regex("no( yes)*| yes( no)*", words, end_id=0)
    states = constraint.begin(np.zeros((2, 1), "int32"), np.array([0, 1]))
    allowed = ops.convert_to_numpy(constraint.allowed(states, 5))
    assert [words.decode(np.flatnonzero(row[0])) for row in allowed] == ["no", "yes"]


def test_choices_are_a_constraint():
    constraint = Constraint.of_choices(["ab", "cc"], TABLE, EOS)
    token_ids, _, _ = constrained(decoding.greedy, Automaton(4), constraint)
    assert set(texts_of(token_ids)) <= {"ab", "cc"}


def test_a_constraint_with_no_room_or_no_text_is_refused():
    with pytest.raises(
        ValueError, match="^decode: max_length must be 8 at least, by the constraint"
    ):
        constrained(decoding.greedy, Automaton(0), "a{7,}")
    with pytest.raises(ValueError, match="^Constraint: the tokenizer can write none of the texts"):
        Constraint.of_regex("z", TABLE, EOS)
