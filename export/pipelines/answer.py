"""Answer: a question and a context to the span of the context that answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import MARGIN, ExpectedAnswer, PipelineRecord, TextModel
from seqkeras.export.pipelines.targets import Targets, are_texts, is_text, of_answers, text_of
from seqkeras.export.text_graphs.characters import BLANK, checked
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.signatures import SCORE, by_strings, outputs_of, strings
from seqkeras.export.text_graphs.whole_characters import whole_characters
from seqkeras.metrics import squad_exact_match, squad_f1
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.pipelines.answer import Settings

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature

SPACES = [point for point in range(0x3001) if chr(point).isspace()]  # no later one is a space


def answer(source: TextModel) -> dict[str, Signature]:
    """Map "question" and "context" to the "answer" in it, its "start" and "end", and its "score".

        score = start(i) + end(j),  i <= j < i + answer_length, of the context's tokens

    The answer is not blank, and has no white space around it. "null_score" is start(0) + end(0). A
    model that allows questions without an answer gives "" at -1 if score <= null_score +
    no_answer_threshold. To truncate cuts the question only.
    """
    options = Settings(**source.settings)
    reader = Reader(source.tokenizers["text"], min(options.window, source.limits.source_length))
    model = source.signatures["serving_default"]
    longest, most = options.answer_length, options.question_length

    def function(question, context, truncate):
        texts = checked(question, "question"), checked(context, "context")
        encoded = reader(*texts, truncate=truncate, most_of_first=most)
        context = texts[1].values
        outputs = outputs_of(model, encoded)
        starts, ends = outputs[options.start], outputs[options.end]
        size = tf.shape(starts)[1]
        order = tf.range(size)
        in_context = encoded.texts == 1
        apart = order[None] - order[:, None]
        allowed = in_context[:, :, None] & in_context[:, None] & (apart >= 0) & (apart < longest)
        allowed &= _say_something(context, encoded)
        scores = tf.where(allowed, starts[:, :, None] + ends[:, None], -float("inf"))
        scores = tf.reshape(scores, [tf.shape(starts)[0], size * size])
        index = tf.argmax(scores, axis=-1, output_type=tf.int32)
        best, null = tf.reduce_max(scores, axis=-1), starts[:, 0] + ends[:, 0]
        start = tf.gather(encoded.starts, index // size, batch_dims=1)
        end = tf.gather(encoded.ends, index % size, batch_dims=1)
        start, end = _trimmed(context, *whole_characters(context, start, end))
        is_found = best > -float("inf")
        if options.no_answer:
            is_found &= best > null + options.no_answer_threshold
        start, end = tf.where(is_found, start, -1), tf.where(is_found, end, -1)
        text = _part(context, start, end)
        answers = {
            "answer": text,
            "start": start,
            "end": end,
            "score": best,
            "null_score": null,
        }
        return answers, encoded.errors

    outputs = [
        strings("answer"),
        TensorSpec("start", "int32", ("batch",)),
        TensorSpec("end", "int32", ("batch",)),
        SCORE,
        TensorSpec("null_score", "float32", ("batch",)),
    ]
    return by_strings(function, [strings("question"), strings("context")], outputs)


def _say_something(texts, encoded):
    """Return (B, T, T): which spans, by first and last token, are not blank."""
    code_points = tf.strings.unicode_decode(texts, "UTF-8").to_tensor(SPACES[0])  # (B, n)
    visible = tf.cast(tf.reduce_all(code_points[..., None] != SPACES, axis=-1), tf.int32)
    seen = tf.pad(tf.cumsum(visible, axis=1), [[0, 0], [1, 0]])  # before each code point
    most = tf.shape(visible)[1]  # offsets of the question may exceed it
    before, behind = (
        tf.gather(seen, tf.clip_by_value(places, 0, most), batch_dims=1)
        for places in (encoded.starts, encoded.ends)
    )
    return behind[:, None] > before[:, :, None]


def _trimmed(texts, start, end):
    """Return offsets of spans without the white space around them."""
    text = tf.strings.regex_replace(_part(texts, start, end), f"^[{BLANK}]+", "")
    start = end - tf.strings.length(text, unit="UTF8_CHAR")
    text = tf.strings.regex_replace(text, f"[{BLANK}]+$", "")
    return start, start + tf.strings.length(text, unit="UTF8_CHAR")


def _part(texts, start, end):
    """Return the spans of texts; "" for a span at -1."""
    start = tf.maximum(start, 0)
    return tf.strings.substr(texts, start, tf.maximum(end - start, 0), unit="UTF8_CHAR")


TARGETS = Targets(
    {"exact match": of_answers(squad_exact_match, text_of), "F1": of_answers(squad_f1, text_of)},
    'a text or a list of texts, "" for no answer',
    lambda target, _: is_text(target) or (are_texts(target) and bool(target)),
)


def _row_length(limits, settings):
    return min(limits.source_length, settings.get("window", Settings.window))


def _expected(outputs, answer, pipeline, given):
    """Return the answer with its position; if there may be no answer, also its margin over none."""
    margins, numbers = [], {}
    for other in answer.alternatives:
        margins.append(np.log(answer.score) - np.log(max(other.score, np.finfo(float).tiny)))
    if answer.margin is not None:
        threshold = pipeline.manifest.settings.get("no_answer_threshold", 0.0)
        margins.append(abs(answer.margin - threshold))
        margin = outputs["score"] - outputs["null_score"]
        numbers = {"numbers": margin, "expected_numbers": answer.margin}
    return ExpectedAnswer(
        f"{outputs['answer'].decode()} ({outputs['start']})",
        f"{answer.text} ({-1 if answer.start is None else answer.start})",
        min(map(abs, margins), default=np.inf) < MARGIN,
        **numbers,
    )


def _differences(manifest):
    yield (
        "`score` is the sum of two logits, of where the answer begins and where it ends, and no "
        "probability; `null_score` is the score of no answer."
    )
    if manifest.settings.get("no_answer"):
        yield (
            'Where there is no answer, `answer` is "", `start` and `end` are -1, and `score` is '
            "still the best span's: `margin` of `serving` is `score` less `null_score`."
        )


def _input_limits(manifest, unit):
    settings, most = manifest.settings, manifest.limits.source_length
    length = settings.get("question_length", Settings.question_length)
    question = f"A question of at most {length} {unit}"
    if unit != "tokens":
        return f"{question}, and a context of at most {most}."
    window = _row_length(manifest.limits, settings)
    return f"{question}, and a context of any length: it is read in windows of {window}."


RECORD = PipelineRecord(
    feeds=TEXTS,
    row_length=_row_length,
    logits=lambda settings: ("start", "end"),
    targets=lambda settings: TARGETS,
    strings=answer,
    expected=_expected,
    expected_by={"n_best": 2},  # so that answers have scores
    differences=_differences,
    input_limits=_input_limits,
    word_length=lambda settings: settings.get("word_length", Settings.word_length),
)
