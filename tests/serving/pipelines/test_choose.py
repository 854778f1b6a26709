import re

import numpy as np
import pytest

from tests.serving.pipelines.toys import TOKENIZER, Toy, load, texts_of_many_lengths


@pytest.fixture
def choose(tmp_path):
    return load(tmp_path, "Choose", Toy(1).graph("choice"))


def test_inputs_of_any_number_of_choices_are_answered_in_their_order(choose):
    texts = texts_of_many_lengths(60, most=13)
    random, inputs = np.random.default_rng(0), []
    while len(texts) > 6:
        size = int(random.integers(2, 6))
        inputs.append((texts.pop(), [texts.pop() for _ in range(size)]))
    assert len({len(choices) for _, choices in inputs}) > 1
    for (text, choices), answer in zip(inputs, choose(inputs, token_budget=80), strict=True):
        logits = [float(Toy(1).pooled(TOKENIZER.analyze(text, choice))[0]) for choice in choices]
        expected = np.exp(logits) / np.exp(logits).sum()
        assert answer.scores == pytest.approx(tuple(expected), rel=1e-4)
        assert answer.index == expected.argmax()
        assert answer.text == choices[answer.index]
        assert answer.score == max(answer.scores)


def test_all_choices_of_an_input_are_read_at_once_whatever_the_budget(choose, calls):
    runs = calls(choose._model, "_run")
    choices = ["cat"] * 19
    choose([("the", choices), ("the", choices), ("the", ["cat", "dog"])], token_budget=1)
    shapes = [inputs["token_ids"].shape for [inputs] in runs]
    assert sorted(shapes) == [(1, 2, 5), (1, 19, 5), (1, 19, 5)]


@pytest.mark.parametrize(
    "given, message",
    [
        ("the cat", "input must be a tuple or a dictionary of text and choices; received 'the cat"),
        (("the", "cat"), "input, choices must be a list of two texts or more; received 'cat'."),
        (("the", ["cat"]), "input, choices must be a list of two texts or more; received list ["),
        (("the", ["cat", ""]), "input, choices[1] is empty; write something to answer."),
        (("the " * 20, ["cat", "dog " * 11]), "input, text has 34 tokens; the limit is 31. Nothin"),
    ],
)
def test_an_input_that_can_not_be_answered_is_refused(choose, given, message):
    with pytest.raises(ValueError, match=f"^Choose: {re.escape(message)}"):
        choose(given)
