"""Classify: a text, a pair of texts, a tree or frames to labels, or to a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import (
    MARGIN,
    ExpectedAnswer,
    PipelineRecord,
    TextModel,
    text_of_tokens,
    without_windows,
)
from seqkeras.export.pipelines.targets import Targets, is_number, nearness, of_answers
from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.signatures import (
    PAIR,
    SCORE,
    by_strings,
    output_name,
    outputs_of,
    strings,
)
from seqkeras.metrics import exact_match
from seqkeras.serving.manifest import TensorSpec

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature


NONE = ""  # the label of a text that has none of the labels


def classify(source: TextModel) -> dict[str, Signature]:
    """Map "text", or "text" and "pair", to "scores" of all labels and the best "label", which is
    empty where none of the labels fits.

    Without labels, "score" is the number of a regression. A tokenizer without pairs has no
    signature of pairs.
    """
    reader = Reader(source.tokenizers["text"], source.limits.source_length)
    model, labels = (
        source.signatures["serving_default"],
        list(source.settings.get("labels", ())),
    )
    name, sizes = (
        output_name(model, source.settings),
        {e.name: e.shape[-1] for e in model.outputs},
    )
    pairs = source.settings.get("pairs")
    if pairs and not reader.takes_pairs:
        raise ValueError("text graph: settings.pairs need a tokenizer of pairs; this takes none.")

    def answer(encoded):
        logits = outputs_of(model, encoded)[name]
        if not labels:
            return {"score": logits[:, 0]}, encoded.errors
        if sizes[name] == 1 < len(labels):  # one logit for two labels: the first label's logit is 0
            logits = tf.concat([tf.zeros_like(logits), logits], axis=-1)
        scores = tf.sigmoid(logits) if source.settings.get("multi_label") else tf.nn.softmax(logits)
        best = tf.gather(tf.constant([*labels, NONE]), tf.argmax(scores, -1))
        return {"scores": scores[:, : len(labels)], "label": best}, encoded.errors

    def single(text, truncate):
        return answer(reader(checked(text), truncate=truncate))

    def pair(text, pair, truncate):
        return answer(reader(checked(text), checked(pair, "pair"), truncate=truncate))

    outputs = [SCORE]
    if labels:
        outputs = [TensorSpec("scores", "float32", ("batch", len(labels))), strings("label")]
    of_two = [strings("text"), strings("pair")]
    if pairs:
        return by_strings(pair, of_two, outputs)
    signatures = by_strings(single, of_two[:1], outputs)
    if pairs is None and reader.takes_pairs:
        signatures |= by_strings(pair, of_two, outputs, PAIR)
    return signatures


NUMBER = Targets(
    {"1 - relative error": nearness(lambda answer: answer.score)}, "a number", is_number
)


def _setting_problems(settings):
    """Yield the problem of a single class without multi_label: softmax of one logit is always 1."""
    labels, several = settings.get("labels"), settings.get("multi_label")
    if labels and len(labels) < 2 and not several:
        yield "settings.labels must be two at least, or settings.multi_label true"


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
    settings, scores = pipeline.manifest.settings, [*answer.scores.values()]
    if settings.get("none_of_these"):
        scores.append(1 - sum(scores))
    best, second, *_ = sorted([*scores, -np.inf], reverse=True)
    return ExpectedAnswer(
        outputs["label"].decode(),
        NONE if answer.labels == (None,) else next(iter(answer.scores)),
        best - second < MARGIN,
        outputs["scores"],
        [answer.scores[label] for label in settings["labels"]],
    )


def _differences(manifest):
    yield from without_windows(manifest)
    if manifest.settings.get("none_of_these"):
        yield "`label` is empty where the pipeline answers `null`: none of the labels fits."
    if manifest.settings.get("multi_label"):
        yield (
            "`label` is the best label, even where its score is under the threshold: which "
            "labels a text has, their `scores` say."
        )


def _input_limits(manifest, unit):
    if "words" in manifest.tokenizers:
        if manifest.settings.get("tree_shape"):
            return f"Text of at most {(manifest.limits.source_length + 1) // 2} words."
        return f"A tree in brackets, of at most {manifest.limits.source_length} nodes."
    return text_of_tokens(manifest, unit)


RECORD = PipelineRecord(
    feeds=TEXTS,
    feeds_frames=True,
    setting_problems=_setting_problems,
    logits=lambda settings: ("output",) if settings.get("labels") else (),
    targets=_targets,
    strings=classify,
    expected=_expected,
    differences=_differences,
    input_limits=_input_limits,
)
