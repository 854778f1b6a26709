"""Classify: a text, a pair of texts, a tree or frames to labels, or to a number."""

import numpy as np

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.expected import MARGIN, ExpectedAnswer
from seqkeras.export.pipelines.record import PipelineRecord, text_of_tokens, without_windows
from seqkeras.export.pipelines.targets import Targets, is_number, nearness, of_answers
from seqkeras.export.text_graphs.pipelines.classify import classify
from seqkeras.metrics import exact_match

NUMBER = Targets(
    {"1 - relative error": nearness(lambda answer: answer.score)}, "a number", is_number
)


def _setting_problems(settings):
    """Yield the problem of a single class without multi_label: softmax of one logit is always 1."""
    labels, several = settings.get("labels"), settings.get("multi_label")
    if labels and len(labels) < 2 and not several:
        yield "settings.labels must be two at least, or settings.multi_label true"


def _logits(settings):
    return ("output",) if settings.get("labels") else ()


def _targets(settings):
    labels = settings.get("labels") or ()
    if not labels:
        return NUMBER
    return _label_sets(labels) if settings.get("multi_label") else _labels(labels)


def _labels(labels):
    return Targets(
        {"accuracy": of_answers(exact_match, lambda answer: answer.labels[0])},
        f"one of the labels {', '.join(labels)}",
        lambda target, _: target in labels,
    )


def _label_sets(labels):
    def score(answers, targets):
        return exact_match((set(answer.labels) for answer in answers), map(set, targets))

    return Targets(
        {"exact match": score},
        f"a list of the labels {', '.join(labels)}",
        lambda target, _: isinstance(target, list) and all(label in labels for label in target),
    )


def _expected(outputs, answer, pipeline, given):
    if "label" not in outputs:
        return ExpectedAnswer(numbers=outputs["score"], expected_numbers=answer.score)
    best, second, *_ = [*answer.scores.values(), -np.inf]
    return ExpectedAnswer(
        outputs["label"].decode(),
        next(iter(answer.scores)),
        best - second < MARGIN,
        outputs["scores"],
        [answer.scores[label] for label in pipeline.manifest.settings["labels"]],
    )


def _differences(manifest):
    yield from without_windows(manifest)
    if manifest.settings.get("multi_label"):
        yield (
            "`label` is the best label, even where its score is under the threshold: which "
            "labels a text has, their `scores` say."
        )


def _input_limits(manifest, unit):
    if "words" in manifest.tokenizers:
        return f"A tree in brackets, of at most {manifest.limits.source_length} nodes."
    return text_of_tokens(manifest, unit)


RECORD = PipelineRecord(
    feeds=TEXTS,
    feeds_frames=True,
    setting_problems=_setting_problems,
    logits=_logits,
    targets=_targets,
    strings=classify,
    expected=_expected,
    differences=_differences,
    input_limits=_input_limits,
)
