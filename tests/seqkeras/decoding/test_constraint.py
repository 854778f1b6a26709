"""Constrained results beside a search through all texts."""

import itertools
import re

import numpy as np
import pytest
from keras import ops

from seqkeras import decoding
from seqkeras.decoding import Constraint
from seqkeras.tokenizers import BOS, EOS, CharacterTable
from tests.arrays import close, floats
from tests.conftest import others_long

TABLE = CharacterTable.learn(["abcd"])
V, T, B = len(TABLE), 6, 3
REGEX = "(ab|c){1,3}|d+"


class Toy:
    """A step whose logits depend on the row, on all tokens so far and on their number."""

    def __init__(self, seed=0):
        self.own, self.follow, self.place = (
            2 * floats(*shape, seed=seed + k)
            for k, shape in enumerate([(B, V), (V, V), (T + 2, V)])
        )

    def state(self):
        rows = len(self.own)
        return {"sum": ops.zeros((rows, 1, V)), "place": ops.zeros((rows, 1), "int32")}

    entries = [decoding.StateEntry("sum", "beam", (V,)), decoding.StateEntry("place", "beam", ())]

    def step(self, token_ids, state):
        total = state["sum"] / 2 + ops.take(ops.convert_to_tensor(self.follow), token_ids, axis=0)
        logits = total + ops.convert_to_tensor(self.own)[:, None]
        logits = logits + ops.take(ops.convert_to_tensor(self.place), state["place"], axis=0)
        return (logits,), {"sum": total, "place": state["place"] + 1}

    def log_probs(self, row, token_ids):
        total = np.zeros(V)
        for token in [BOS, *token_ids]:
            total = total / 2 + self.follow[token]
        logits = total + self.own[row] + self.place[len(token_ids)]
        return logits - np.log(np.exp(logits).sum())

    def score(self, row, text):
        ids = [*TABLE.encode(text), EOS]
        return sum(self.log_probs(row, ids[:t])[token] for t, token in enumerate(ids))


ALL = ["".join(text) for length in range(T) for text in itertools.product("abcd", repeat=length)]
TEXTS = [text for text in ALL if re.fullmatch(REGEX, text)]


def constrained(function, toy, regex=REGEX, **options):
    constraint = Constraint.of_regex(regex, TABLE, EOS)
    return function(
        toy.step,
        toy.state(),
        start_id=BOS,
        end_id=EOS,
        max_length=T,
        state_entries=toy.entries,
        constraint=constraint,
        **options,
    )


def texts_of(token_ids):
    return [TABLE.decode(row) for row in ops.convert_to_numpy(token_ids)]


@pytest.mark.parametrize("seed", others_long(range(2)))
def test_a_beam_of_all_finds_the_most_probable_text_that_matches(seed):
    toy = Toy(seed)
    token_ids, _, scores = constrained(decoding.beam, toy, num_beams=23, n_best=3)
    for row in range(B):
        expected = sorted(((toy.score(row, text), text) for text in TEXTS), reverse=True)[:3]
        assert texts_of(token_ids[row]) == [text for _, text in expected]
        close(scores[row], np.array([score for score, _ in expected]), rtol=1e-4)


@pytest.mark.parametrize("regex", [REGEX, "(?s:.*)", "(abc)*"])
def test_greedy_takes_the_best_token_that_some_text_goes_on_with(regex):
    toy = Toy(5)
    token_ids, _, scores = constrained(decoding.greedy, toy, regex)
    texts = [text for text in ALL if re.fullmatch(regex, text)]
    for row, found in enumerate(texts_of(token_ids)):
        written = []
        while written[-1:] != [EOS]:
            begun = TABLE.decode(written)
            rest = [text[len(begun) :] for text in texts if text.startswith(begun)]
            allowed = {[*TABLE.encode(text), EOS][0] for text in rest}
            written.append(max(allowed, key=toy.log_probs(row, written).__getitem__))
        assert found == TABLE.decode(written)
        close(scores[row], toy.score(row, found), rtol=1e-4)


def test_what_is_drawn_matches_and_is_as_frequent_as_the_model_says():
    toy = Toy(7)
    toy.own = np.repeat(toy.own[:1], 700, axis=0)
    texts = texts_of(constrained(decoding.sample, toy, "a|b|cd", seed=1)[0])
    first = np.exp(toy.log_probs(0, []))[[TABLE.id_of(each) for each in "abc"]]
    drawn = [texts.count(text) / len(texts) for text in ("a", "b", "cd")]
    np.testing.assert_allclose(drawn, first / first.sum(), atol=0.06)


def test_a_constraint_comes_before_processors():
    token_ids, _, scores = constrained(decoding.sample, Toy(2), top_k=1, temperature=0.5, seed=1)
    greedy_ids, _, greedy_scores = constrained(decoding.greedy, Toy(2))
    assert texts_of(token_ids) == texts_of(greedy_ids)
    # A sure choice among what is allowed costs what is not allowed alone.
    assert (ops.convert_to_numpy(scores) >= ops.convert_to_numpy(greedy_scores) - 1e-5).all()


def test_a_prompt_is_not_constrained_and_what_is_behind_it_is():
    prompt = np.array([[4, 7], [5, 5], [6, 4]]), np.array([2, 1, 0])
    token_ids, lengths, _ = constrained(decoding.greedy, Toy(3), "(ab|c)+", prompt=prompt)
    for row, begin, text in zip(prompt[0], prompt[1], texts_of(token_ids)):
        assert text.startswith(TABLE.decode(row[:begin]))
        assert re.fullmatch("(ab|c)+", text[begin:])


def test_choices_are_a_constraint():
    constraint = Constraint.of_choices(["ab", "dd"], TABLE, EOS)
    toy = Toy(4)
    token_ids, _, _ = decoding.greedy(
        toy.step, toy.state(), start_id=BOS, end_id=EOS, max_length=T, constraint=constraint
    )
    assert set(texts_of(token_ids)) <= {"ab", "dd"}


def test_a_constraint_with_no_room_or_no_text_is_refused():
    with pytest.raises(
        ValueError, match="^decode: max_length must be 8 at least, by the constraint"
    ):
        constrained(decoding.greedy, Toy(), "a{7,}")
    with pytest.raises(ValueError, match="^Constraint: the tokenizer can write none of the texts"):
        Constraint.of_regex("z", TABLE, EOS)
