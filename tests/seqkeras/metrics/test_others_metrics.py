"""Metrics of fine-tuning on thousands of random cases, beside scikit-learn's and seqeval's."""

import random
import warnings

import numpy as np
import pytest
import seqeval.metrics
import sklearn.metrics
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOBES, Entities

from seqkeras.metrics import (
    class_f1,
    class_scores,
    entity_f1,
    entity_scores,
    exact_match,
    matthews_correlation,
)
from seqkeras.serving.entities import entities

CASES = 300


def classes(draw):
    """Answers and targets of a few labels."""
    labels = "abcd"[: draw.randint(2, 4)]
    targets = [draw.choice(labels) for _ in range(draw.randint(1, 31))]
    kept = draw.random()
    return [own if draw.random() < kept else draw.choice(labels) for own in targets], targets


def tagged(draw, letters):
    """Tags of a few sentences, well formed or not, as a model gives them."""
    known = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("PER", "LOC"))]
    return [
        [draw.choice(known) for _ in range(length)] for length in draw.choices(range(1, 9), k=3)
    ]


def test_classes_are_measured_as_by_scikit_learn():
    draw = random.Random(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is never answered
        for _ in range(CASES):
            found, targets = classes(draw)
            assert exact_match(found, targets) == sklearn.metrics.accuracy_score(targets, found)
            expected = sklearn.metrics.matthews_corrcoef(targets, found)
            assert matthews_correlation(found, targets) == pytest.approx(expected)
            f1 = class_f1(found, targets)
            expected = sklearn.metrics.f1_score(targets, found, labels=[*f1], average=None)
            assert [*f1.values()] == pytest.approx([*expected])
            *expected, _ = sklearn.metrics.precision_recall_fscore_support(
                targets, found, labels=[*f1], zero_division=0
            )
            rows = [[*of_class.values()] for of_class in class_scores(found, targets).values()]
            np.testing.assert_allclose(np.transpose(rows), expected)


def test_entities_in_iob2_are_those_of_seqeval():
    draw = random.Random(1)
    for _ in range(CASES):
        for tags in tagged(draw, "BI"):
            expected = [(kind, first, last + 1) for kind, first, last in get_entities(tags)]
            assert entities(tags) == expected


def test_entities_in_bmes_are_those_of_the_same_tags_in_iobes():
    draw = random.Random(3)
    for _ in range(CASES):
        for tags in tagged(draw, "BMES"):
            iobes = [tag.replace("M-", "I-") for tag in tags]
            assert entities(tags) == entities(iobes)
            if (well_formed := Entities([iobes], scheme=IOBES).entities[0]) and entities(tags):
                strict = {(own.tag, own.start, own.end) for own in well_formed}
                assert strict <= {*entities(tags)}


def test_scores_of_entities_in_iob2_are_those_of_seqeval():
    draw = random.Random(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no entity at all
        for _ in range(CASES):
            targets = tagged(draw, "BI")
            found = [[_changed(tag, draw) for tag in row] for row in targets]
            scores, expected = entity_scores(found, targets), _of_seqeval(found, targets)
            assert entity_f1(found, targets) == scores["f1"]
            by_label = scores.pop("by_label")
            assert scores == pytest.approx(expected.pop("micro avg"))
            assert by_label.keys() == expected.keys()
            for label, of_label in by_label.items():
                assert of_label == pytest.approx(expected[label])
        assert entity_f1([["O"]], [["O"]]) == seqeval.metrics.f1_score([["O"]], [["O"]])
        empty = {"entities": 0, "precision": 0, "recall": 0, "f1": 0, "by_label": {}}
        assert entity_scores([["O"]], [["O"]]) == empty


def _of_seqeval(found, targets):
    """Its report under our names; of no entity at all it makes none."""
    names = {"support": "entities", "f1-score": "f1"}
    nothing = {"micro avg": {"precision": 0, "recall": 0, "f1-score": 0, "support": 0}}
    if not any(tag != "O" for row in [*found, *targets] for tag in row):
        report = nothing
    else:
        report = seqeval.metrics.classification_report(targets, found, output_dict=True)
    return {
        label: {names.get(name, name): float(value) for name, value in of_label.items()}
        for label, of_label in report.items()
        if label not in ("macro avg", "weighted avg")
    }


def _changed(tag, draw):
    return tag if draw.random() < 0.7 else draw.choice(["O", "B-PER", "I-LOC"])
