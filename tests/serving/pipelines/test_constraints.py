"""Texts that are constrained: greedily, by beams and by sampling, beside a search through all."""

import itertools
import re
from functools import partial

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import BundleError, DecodingDefaults
from seqkeras.serving.text import EOS, CharacterTable
from tests.serving import toy_bundle, toy_language_model
from tests.serving.pipelines.toys import of_bytes, sentence_pieces
from tests.serving.toy_bundle import SOURCE, TARGET, TARGET_LENGTH, ToyModel
from tests.serving.toy_language_model import ToyLanguageModel

TEXTS = ["up|bad", "up|cab", "down|egad", "up|a"]
REGEX = r"(ab|c[d-f]|g{2,})+"
TABLE = CharacterTable.learn(["abcd "])
LIMIT = 9


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    return serving.load(toy_bundle.write_bundle(tmp_path_factory.mktemp("bundles") / "toy"))


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    model, folder = ToyLanguageModel(len(TABLE), LIMIT), tmp_path_factory.mktemp("bundles") / "toy"
    return serving.load(toy_language_model.write_bundle(folder, model, TABLE)), model


def scored(log_probs, text, table):
    """The model's own log-probability of a text and its end."""
    ids = [*table.encode(text), EOS]
    return sum(log_probs(ids[:t])[token] for t, token in enumerate(ids))


def best(log_probs, letters, most, matches, table):
    """All texts that match, as (score, text), the best first; by trying every text."""
    texts = (
        "".join(each)
        for length in range(most)
        for each in itertools.product(letters, repeat=length)
    )
    found = [(scored(log_probs, text, table), text) for text in texts if matches(text)]
    return sorted(found, reverse=True)


def step_by_step(log_probs, letters, most, matches, table):
    """(score, text): each token the most probable one with which some text that matches begins."""
    texts = {text for _, text in best(log_probs, letters, most, matches, table)}
    found, score = "", 0.0
    while True:
        following = log_probs(table.encode(found))
        going_on = {each[len(found)] for each in texts if each.startswith(found) and each != found}
        scores = {each: following[table.id_of(each)] for each in going_on}
        if found in texts:
            scores[""] = following[EOS]
        chosen = max(scores, key=scores.get)
        score += scores[chosen]
        if not chosen:
            return score, found
        found += chosen


@pytest.mark.parametrize("regex", [REGEX, "[b-f]{2}", "(abc)*", "e|ga[bd]*"])
def test_one_beam_follows_the_most_probable_token_that_may_follow(translate, regex):
    answers = translate(TEXTS, num_beams=1, regex=regex)
    for text, answer in zip(TEXTS, answers):
        log_probs = partial(ToyModel().log_probs, SOURCE.encode(text))
        matches = re.compile(regex).fullmatch
        score, expected = step_by_step(log_probs, "abcdefg", TARGET_LENGTH, matches, TARGET)
        assert (answer.text, answer.score) == (expected, pytest.approx(score, rel=1e-4))


def test_an_answer_is_one_of_the_choices_and_the_likelier_one(translate):
    model, choices = ToyModel(), ["abc", "cbe", "dbc", "g"]
    for text, answer in zip(TEXTS, translate(TEXTS, num_beams=5, choices=choices)):
        source = SOURCE.encode(text)
        scores = {each: scored(partial(model.log_probs, source), each, TARGET) for each in choices}
        assert answer.text == max(scores, key=scores.get)
        assert answer.score == pytest.approx(scores[answer.text], rel=1e-4)


def test_a_bundle_has_a_default_that_a_call_may_replace(tmp_path):
    decoding = DecodingDefaults(regex="gg|fff")
    translate = serving.load(toy_bundle.write_bundle(tmp_path / "b", decoding=decoding))
    assert translate("up|bad").text in ("gg", "fff")
    assert "".join(translate.stream("up|bad")) == translate("up|bad", num_beams=1).text
    assert translate("up|bad", regex="(?s:.*)").text == "cbe"
    assert translate("up|bad", choices=["cbe", "a"]).text == "cbe"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regex": "a("}, r"^Translate: regex 'a\(' can not be read: missing \)"),
        ({"regex": 5}, r"^Translate: regex must be a string; received int 5\.$"),
        ({"regex": "z+"}, r"^Translate: regex 'z\+' matches no text that the bundle's tokenizer c"),
        ({"choices": []}, r"^Translate: choices must be one text at least; received none\.$"),
        ({"choices": "abc"}, r"^Translate: choices must be a list of strings; received 'abc'\.$"),
        ({"choices": ["a", "az"]}, r"^Translate: choices: the bundle's tokenizer can not write 'a"),
        ({"choices": ["a"], "regex": "a"}, r"^Translate: regex and choices exclude each other"),
        ({"regex": "a{7,}"}, r"need more room than 7 tokens: the shortest .* has 8 tokens with <e"),
    ],
)
def test_wrong_constraints_are_refused_in_a_line(translate, options, message):
    with pytest.raises(ValueError, match=message):
        translate([], **options)


def test_a_bundle_whose_default_is_wrong_is_refused(tmp_path):
    for name, regex in (("wrong", "a("), ("foreign", "z"), ("long", "a{9}")):
        folder = toy_bundle.write_bundle(tmp_path / name, decoding=DecodingDefaults(regex=regex))
        with pytest.raises(BundleError, match=r"manifest.json: decoding: regex .*Export the bundl"):
            serving.load(folder)


# Language models.


@pytest.mark.parametrize("regex", ["(ab|c ){1,2}d?", "[ab]{1,3}|cc", "b*"])
def test_one_beam_follows_each_prompt_of_a_batch_by_what_may_follow(generate, regex):
    pipeline, model = generate
    prompts = ["a", "bad", "cab", "dd"]
    answers = pipeline(prompts, regex=regex, num_beams=1, max_new_tokens=6)
    for prompt, answer in zip(prompts, answers):
        log_probs, matches = model.behind(TABLE.encode(prompt)), re.compile(regex).fullmatch
        score, expected = step_by_step(log_probs, "abcd ", 6, matches, TABLE)
        assert (answer.text, answer.score) == (expected, pytest.approx(score, rel=1e-4))


def test_texts_are_drawn_as_often_as_the_model_says_of_those_allowed(generate):
    pipeline, model = generate
    choices = ["a", "b", "cd"]
    answer = pipeline("ba", choices=choices, sample=True, n_best=3000, seed=1)
    texts = [each.text for each in (answer, *answer.alternatives)]
    ids = TABLE.encode("ba")
    first = np.exp(model.log_probs(ids))[[TABLE.id_of(each) for each in "abc"]]
    expected = first / first.sum()  # token by token, as a search chooses
    drawn = [texts.count(choice) / len(texts) for choice in choices]
    np.testing.assert_allclose(drawn, expected, atol=0.03)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"stop": "a"}, "stop can not be combined with regex, choices"),
        ({"banned_tokens": ["a"]}, "banned_tokens can not be combined with regex, choices"),
        ({"min_new_tokens": 2}, "min_new_tokens can not be combined with regex, choices"),
        ({"forced_tokens": {0: "a"}}, "forced_tokens can not be combined with regex, choices"),
        ({"regex": "a{2,}"}, r"prompts\[1\]: regex or choices need more room"),
    ],
)
def test_rules_that_contradict_and_a_prompt_that_leaves_no_room_are_refused(
    generate, options, message
):
    with pytest.raises(ValueError, match=f"^Generate: {message}"):
        generate[0](["a", "abcdabc"], **{"regex": "ab"} | options)


def test_half_a_character_is_always_finished(tmp_path):
    tokenizer = of_bytes()
    folder = toy_language_model.write_bundle(
        tmp_path / "bytes",
        ToyLanguageModel(len(tokenizer), 31),
        tokenizer,
        decoding=DecodingDefaults(start_id=0, end_id=0),
    )
    generate = serving.load(folder)
    regex = "[€-😀]{2,4}"
    for options in ({}, {"num_beams": 3}, {"sample": True, "seed": 2}):
        for answer in generate(["x", "é"], regex=regex, **options):
            assert re.fullmatch(regex, answer.text), answer
    assert "".join(generate.stream("x", regex=regex)) == generate("x", regex=regex).text


def test_the_command_line_takes_choices(shared_bundle, command):
    options = "--choices", "cbe", "--choices", "g"
    assert command("predict", shared_bundle, *options, "up|bad") == (0, "cbe\n", "")


def test_a_word_at_the_begin_of_a_text_has_no_space_and_one_behind_a_prompt_has(tmp_path):
    tokenizer = sentence_pieces(["the cat", "a dog"], vocab_size=20)
    start, end = (tokenizer.id_of(token) for token in ("<s>", "</s>"))
    model = ToyLanguageModel(len(tokenizer), LIMIT)
    decoding = DecodingDefaults(start_id=start, end_id=end)
    folder = toy_language_model.write_bundle(tmp_path / "b", model, tokenizer, decoding=decoding)
    options = {"regex": "(cat| the| a)+", "max_new_tokens": 4, "num_beams": 5, "n_best": 5}
    for answer in serving.load(folder)(["", "a", "the cat", "a dog"], **options):
        for each in (answer, *answer.alternatives):
            assert re.fullmatch(options["regex"], each.text)
