"""Scores of answers beside targets, against counts by hand; targets that nobody could answer."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from seqkeras.export import scores
from seqkeras.export.pipelines.targets import TargetError
from seqkeras.export.scores import scores_of, wrong_target
from seqkeras.serving.results import (
    Choice,
    Classification,
    Filler,
    Filling,
    Forecasting,
    Span,
    Tagging,
    Translation,
    Word,
)
from tests.references.metrics import chrf

LABELS = {"labels": ["low", "high"]}
TAGS = {"labels": ["O", "B-X", "I-X", "B-Y"]}


def tagging(*tags):
    return Tagging(tuple(Word("w", tag, 0, 1, 1.0) for tag in tags), ())


def classes(*labels, score=1.0):
    return Classification(labels, score, {})


def forecast(*rows):
    return Forecasting(np.array(rows, "float32"), {})


# Pipeline, settings, answers in float32, targets, and the last of their scores.
CASES = [
    ("Translate", {}, [Translation("ab", 0), Translation("c", 0)], ["ab", "d"], 1 / 2),
    ("Classify", LABELS, [classes("low"), classes("high")], ["low", "low"], 1 / 2),
    (
        "Classify",
        {**LABELS, "multi_label": True},
        [classes("low", "high"), classes(), classes("low")],
        [["high", "low"], [], ["high"]],
        2 / 3,
    ),
    ("Classify", {}, [classes(score=2.5), classes(score=-3.0)], [2, -4.0], 1 - 1.5 / 6),
    # Of entities: found 3, true 2, both 1 (the second is longer than it should be).
    (
        "Tag",
        TAGS,
        [tagging("B-X", "I-X", "O"), tagging("B-Y", "B-X", "I-X")],
        [["B-X", "I-X", "O"], ["O", "B-X", "O"]],
        2 * 1 / (3 + 2),
    ),
    ("Tag", {**TAGS, "scheme": None}, [tagging("B-X", "O", "O")], [["B-X", "O", "B-Y"]], 2 / 3),
    (
        "Answer",
        {},
        [Span("the  Cat.", 0, 9, 1), Span("", None, None, 1), Span("a dog", 0, 5, 1)],
        [["no", "cat"], "", "cat"],
        2 / 3,
    ),
    ("Choose", {}, [Choice("a", 0, 1, ()), Choice("b", 1, 1, ())], [0, 0], 1 / 2),
    (
        "FillMask",
        {},
        [Filling("", ((Filler("a", 0.6), Filler("b", 0.4)), (Filler("c", 1),)))],
        [["b", "c"]],
        1 / 2,
    ),
    ("Forecast", {}, [forecast([1, 2], [3, 4])], [[[1, 1], [5, 4]]], 1 - 3 / 11),
    ("Forecast", {}, [forecast([1], [3])], [[2, 2]], 1 - 2 / 4),
]


def score(pipeline, settings, answers, targets, monkeypatch):
    """The score of a pipeline that gives these answers, and others to nobody's question."""
    inputs = [f"input {place}" for place in range(len(answers))]
    examples = [{"input": i, "target": t} for i, t in zip(inputs, targets)]
    examples.insert(1, {"input": "without a target"})

    def made(folder, manifest, runtime):
        assert (folder, runtime.precision) == ("folder", "float32")

        def answer(asked):
            assert asked == inputs
            return answers

        return answer

    monkeypatch.setattr(scores, "PIPELINES", {pipeline: made})
    run = SimpleNamespace(inputs=[each["input"] for each in examples], examples=examples)
    manifest = SimpleNamespace(pipeline=pipeline, settings=settings)
    return scores_of(run, "folder", manifest)


@pytest.mark.parametrize(("pipeline", "settings", "answers", "targets", "expected"), CASES)
def test_answers_beside_targets(pipeline, settings, answers, targets, expected, monkeypatch):
    found = score(pipeline, settings, answers, targets, monkeypatch)
    [*_, last] = found.by_precision("float32").values()
    assert last == pytest.approx(expected)
    assert found.examples == len(answers)


def test_texts_none_of_which_is_exact_are_scored_by_the_n_grams_of_their_characters(monkeypatch):
    answers, targets = ["the cat sat down", "a dog"], ["the cat sat", "the dog ran"]
    pairs = [Translation(each, 0) for each in answers]
    scored = score("Translate", {}, pairs, targets, monkeypatch).by_precision("float32")
    assert scored == {"chrF": pytest.approx(chrf(answers, targets)), "exact match": 0}
    assert 0.3 < scored["chrF"] < 0.9


def test_there_is_no_score_without_targets_nor_of_vectors():
    run = SimpleNamespace(inputs=["a"], examples=[{"input": "a"}])
    assert scores_of(run, None, SimpleNamespace(pipeline="Choose", settings={})) is None
    run = SimpleNamespace(inputs=["a"], examples=[{"input": "a", "target": 1}])
    assert scores_of(run, None, SimpleNamespace(pipeline="Embed", settings={})) is None


def test_a_forecast_s_target_has_its_shape(monkeypatch):
    found = score("Forecast", {}, [forecast([1, 2], [3, 4])], [[1, 2, 3]], monkeypatch)
    with pytest.raises(TargetError, match=r"target must have shape \(2, 2\), \(horizon, targets\)"):
        found.by_precision("float32")


WORDS = SimpleNamespace(places=[(0, 1), (2, 3)])


@pytest.mark.parametrize(
    ("pipeline", "settings", "target", "row", "message"),
    [
        ("Translate", {}, 3, None, "target must be a text; received int 3"),
        ("Classify", LABELS, "middle", None, "one of the labels low, high; received 'middle'"),
        ("Classify", LABELS, 1, None, "one of the labels low, high; received int 1"),
        ("Classify", {**LABELS, "multi_label": True}, "low", None, "a list of the labels low"),
        ("Classify", {}, True, None, "a number; received bool True"),
        ("Tag", TAGS, ["O"], WORDS, "a list of a tag for each word, of O, B-X, I-X, B-Y; received"),
        ("Tag", TAGS, ["O", "Z"], WORDS, "a list of a tag for each word"),
        ("Answer", {}, [], None, 'a text or a list of texts, "" for no answer; received list'),
        ("Choose", {}, 2, SimpleNamespace(choices=("a", "b")), "the place of a choice, from 0;"),
        ("FillMask", {}, ["a"], SimpleNamespace(masks=[1, 2]), "a list of a token for each mask;"),
        ("Forecast", {}, [["x"]], None, r"a list of \(horizon, targets\) numbers; received list"),
        ("Forecast", {}, [[1], [1, 2]], None, r"a list of \(horizon, targets\) numbers; received"),
    ],
)
def test_a_target_that_nobody_could_answer_is_named(pipeline, settings, target, row, message):
    [found] = wrong_target(pipeline, settings, {"target": target}, row)
    assert found.startswith("target must be ") and re.search(message, found)


@pytest.mark.parametrize(("pipeline", "settings", "answers", "targets", "expected"), CASES)
def test_good_targets_are_not_refused(pipeline, settings, answers, targets, expected):
    for answer, target in zip(answers, targets):
        row = SimpleNamespace(
            places=getattr(answer, "words", ()), masks=getattr(answer, "masks", ()), choices="ab"
        )
        assert not list(wrong_target(pipeline, settings, {"target": target}, row))
