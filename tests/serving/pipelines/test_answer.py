import itertools
import re

import numpy as np
import pytest

from seqkeras.serving import BundleError
from seqkeras.serving.manifest import Limits
from tests.serving.pipelines.test_tag import context_in, windows_of
from tests.serving.pipelines.toys import TOKENIZER, WORDS, Toy, load, of_bytes

SETTINGS = {
    "start": "start",
    "end": "end",
    "window": 17,
    "stride": 5,
    "question_length": 6,
    "answer_length": 4,
}
QUESTION = "who ran to paris?"


def answerer(folder, **settings):
    return load(folder, "Answer", Toy(2).graph("span"), SETTINGS | settings)


def context_of(count, seed=0):
    return "  ".join(np.random.default_rng(seed).choice([*WORDS, "dogs", ","], count))


def spans(question, context, room, stride, answer_length):
    """Every span and its score, in loops; and the best score of none."""
    token_ids = TOKENIZER.encode(context)
    toy = Toy(2)
    scores = (toy.E[token_ids] + toy.S[1]) @ toy.W  # the toy reads a token as in any window
    windows = windows_of(token_ids, room, stride)

    found = []
    for first, last in itertools.product(range(len(token_ids)), repeat=2):
        best = max(windows, key=lambda window: context_in(window, first))
        if first <= last < first + answer_length and last in best:
            found.append((float(scores[first, 0]) + float(scores[last, 1]), first, last))
    null = float(((toy.E[TOKENIZER.id_of("[CLS]")] + toy.S[0]) @ toy.W).sum())
    return sorted(found, reverse=True), null


@pytest.mark.parametrize("count, stride", [(1, 5), (9, 5), (30, 1), (43, 5), (43, 50)])
def test_the_best_spans_are_those_of_loops_over_all_windows(tmp_path, count, stride):
    context = context_of(count)
    answer = answerer(tmp_path, stride=stride)((QUESTION, context), n_best=4)
    room = 17 - 3 - len(TOKENIZER.encode(QUESTION))
    expected, _ = spans(QUESTION, context, room, stride, 4)
    offsets = TOKENIZER.analyze(context).offsets[1:-1]
    total = sum(np.exp(score) for score, _, _ in expected)
    found = [answer, *answer.alternatives]
    assert len(found) == len({(each.start, each.end) for each in found}) == min(4, len(expected))
    scores = {(offsets[i][0], offsets[j][1]): score for score, i, j in expected}
    for each, (score, _, _) in zip(found, expected):  # equal words may change places
        assert scores[each.start, each.end] == pytest.approx(score, rel=1e-5)
        assert each.text == context[each.start : each.end]
        assert each.score == pytest.approx(np.exp(score) / total, rel=1e-4)
        assert each.margin is None


@pytest.mark.parametrize("count", [5, 29])
def test_no_answer_is_one_where_the_margin_is_not_over_the_threshold(tmp_path, count):
    context = context_of(count)
    ask = answerer(tmp_path, no_answer=True)
    room = 17 - 3 - len(TOKENIZER.encode(QUESTION))
    expected, null = spans(QUESTION, context, room, 5, 4)
    margin = expected[0][0] - null
    total = np.exp(null) + sum(np.exp(score) for score, _, _ in expected)

    answer = ask((QUESTION, context), n_best=2, no_answer_threshold=margin - 1e-3)
    assert answer.text
    assert answer.margin == pytest.approx(margin, rel=1e-4)
    assert answer.score == pytest.approx(np.exp(expected[0][0]) / total, rel=1e-4)

    none = ask((QUESTION, context), n_best=2, no_answer_threshold=margin + 1e-3)
    assert (none.text, none.start, none.end) == ("", None, None)
    assert none.score == pytest.approx(np.exp(null) / total, rel=1e-4)
    assert [each.text for each in none.alternatives] == [answer.text]
    assert ask((QUESTION, context), no_answer_threshold=margin + 1e-3).alternatives == ()


def answerer_of(folder, tokenizer, toy=None):
    """Of contexts of 37 tokens, and of answers of up to 9."""
    toy = toy or Toy(2, vocab_size=len(tokenizer))
    settings = SETTINGS | {"window": 60, "question_length": 20, "answer_length": 9}
    limits = Limits(source_length=60)
    return load(folder, "Answer", toy.graph("span"), settings, tokenizer=tokenizer, limits=limits)


@pytest.mark.parametrize("reads", ["WordPiece", "bytes"])
def test_a_span_holds_whole_characters(tmp_path, reads):
    context = "the\u0301 नम 👩🏽\u200d🚀"
    ask = answerer_of(tmp_path, TOKENIZER if reads == "WordPiece" else of_bytes())
    answer = ask((QUESTION, context), n_best=100)
    spans = [answer, *answer.alternatives]
    assert len({(span.start, span.end) for span in spans}) == len(spans) > 3
    for span in spans:
        assert context[span.start : span.end] == span.text
        assert not set("\u0301🏽\u200d🚀") & {context[span.start], (context + " ")[span.end]}


def test_a_span_has_no_white_space_around_it_and_is_more_than_that(tmp_path):
    merges = [("\u0120", "c"), ("\u0120", "\u0120")]
    tokenizer = of_bytes(map("".join, merges), merges)
    toy = Toy(2, vocab_size=len(tokenizer))
    toy.E[[tokenizer.id_of(each) for each in ("\u0120", "\u0120\u0120")]] += 9 * toy.W.sum(axis=1)
    context = " \n a cat  \u3000at\u0301 "
    answer = answerer_of(tmp_path, tokenizer, toy)((QUESTION, context), n_best=7)
    spans = [answer, *answer.alternatives]
    assert len({(span.start, span.end) for span in spans}) == 7  # though tokens differ in spaces
    for span in spans:
        assert span.text == context[span.start : span.end] == span.text.strip() != ""
    assert [span.score for span in spans] == sorted((span.score for span in spans), reverse=True)
    assert sum(span.score for span in spans) < 1


def test_as_many_spans_are_given_as_there_are(tmp_path):
    context = " a  🚀 b"  # the three places of characters, from each of which to which
    places = [(1, 2), (4, 5), (6, 7)]
    expected = {(i[0], j[1]) for i, j in itertools.combinations_with_replacement(places, 2)}
    ask = answerer_of(tmp_path, of_bytes())
    for n_best in range(1, 9):
        answer = ask((QUESTION, context), n_best=n_best)
        found = [(span.start, span.end) for span in (answer, *answer.alternatives)]
        assert len(found) == len({*found}) == min(n_best, 6)
        assert {*found} <= expected


def test_a_long_question_is_cut_when_asked(tmp_path):
    ask = answerer(tmp_path)
    expected = ask(("who ran to new york to", "the cat sat on"))
    given = "who ran to new york to paris?", "the cat sat on"
    assert ask(given, truncate=True) == expected


NOTHING, LONG = "\u200b", "who ran to new york to paris?"


@pytest.mark.parametrize(
    "given, threshold, message",
    [
        ("who?", None, "input must be a tuple or a dictionary of question and context; received '"),
        (("", "the cat"), None, "input, question is empty; write something to answer."),
        ((NOTHING, "the cat"), None, "input, question has no token; write something to answer."),
        ((LONG, "the cat"), None, "input, question has 8 tokens; the limit is 6. Nothing was"),
        (("who?", "cat"), True, "no_answer_threshold must be a number; received"),
    ],
)
def test_what_can_not_be_answered_is_refused(tmp_path, given, threshold, message):
    ask, options = answerer(tmp_path, no_answer=True), {"no_answer_threshold": threshold}
    with pytest.raises(ValueError, match=f"^Answer: {re.escape(message)}"):
        ask(given, **options)
    in_a_list = message.replace("input", "inputs[1]", 1)
    with pytest.raises(ValueError, match=f"^Answer: {re.escape(in_a_list)}"):
        ask([("who?", "the cat"), given], **options)


def test_wrong_settings_are_refused_with_every_reason(tmp_path):
    with pytest.raises(BundleError) as caught:
        answerer(tmp_path, start="begin", stride=0, answer_length=-1)
    assert str(caught.value) == (
        f"{tmp_path}: manifest.json: settings.start must be one of start, end; received 'begin'; "
        "settings.stride must be at least 1; received 0; "
        "settings.answer_length must be at least 1; received -1. Export the bundle again."
    )
    with pytest.raises(ValueError, match="^Answer: no_answer_threshold must be None; this model "):
        answerer(tmp_path / "a")([], no_answer_threshold=0.5)
    with pytest.raises(BundleError, match="must leave room for a context .*, 6, and 3 special tok"):
        answerer(tmp_path / "b", window=9)
    with pytest.raises(BundleError, match="received 384 and 31"):
        answerer(tmp_path / "c", window=384, question_length=64)
