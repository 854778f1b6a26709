"""Tag: a text, or frames, to a tag for each word or frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import (
    MARGIN,
    ExpectedAnswer,
    PipelineRecord,
    TextModel,
    without_windows,
)
from seqkeras.export.pipelines.targets import Targets, of_answers
from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.signatures import by_strings, output_name, outputs_of, strings
from seqkeras.metrics import entity_f1, tag_accuracy
from seqkeras.serving.manifest import TensorSpec

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature


def tag(source: TextModel) -> dict[str, Signature]:
    """Map "text" to the "tags" of its tokens with "scores", and "starts" and "ends" in the text.

    Special tokens and padding have the tag "" at -1.
    """
    reader = Reader(source.tokenizers["text"], source.limits.source_length)
    model = source.signatures["serving_default"]
    name = output_name(model, source.settings)
    [output] = [spec for spec in model.outputs if spec.name == name]
    if len(output.shape) == 4:
        raise ValueError("text graph: Tag by chains of tags is not known.")
    labels = tf.constant(list(source.settings["labels"]))

    def function(text, truncate):
        encoded = reader(checked(text), truncate=truncate)
        scores = tf.nn.softmax(outputs_of(model, encoded)[name])
        is_text = encoded.starts >= 0
        answers = {
            "tags": tf.where(is_text, tf.gather(labels, tf.argmax(scores, axis=-1)), ""),
            "scores": tf.where(is_text, tf.reduce_max(scores, axis=-1), 0.0),
            "starts": encoded.starts,
            "ends": encoded.ends,
        }
        return answers, encoded.errors

    shape = ("batch", "length")
    outputs = [
        TensorSpec("tags", "string", shape),
        TensorSpec("scores", "float32", shape),
        TensorSpec("starts", "int32", shape),
        TensorSpec("ends", "int32", shape),
    ]
    return by_strings(function, [strings("text")], outputs)


def _targets(settings):
    labels, scheme = settings.get("labels") or (), settings.get("scheme", "IOB2")

    def is_valid(target, row):
        known = isinstance(target, list) and all(label in labels for label in target)
        return known and len(target) == len(getattr(row, "places", row))

    name, metric = ("F1 of entities", entity_f1) if scheme else ("accuracy", tag_accuracy)
    return Targets(
        {name: of_answers(metric, lambda answer: [word.tag for word in answer.words])},
        f"a list of a tag for each word, of {', '.join(labels)}",
        is_valid,
    )


def _expected(outputs, answer, pipeline, given):
    """Return the tags of the words' first tokens, with the tokens' positions.

    Two tags can only tie if neither has a probability over one half.
    """
    read = pipeline.encode(given)
    [encoding], [(_, tokens)] = read.windows.rows, read.tokens
    tags = [outputs["tags"][token].decode() for token in tokens]
    actual = zip(tags, outputs["starts"][tokens], outputs["ends"][tokens], strict=True)
    expected = [
        (word.tag, *encoding.offsets[token])
        for word, token in zip(answer.words, tokens, strict=True)
    ]
    return ExpectedAnswer(
        _with_places(actual),
        _with_places(expected),
        any(word.score - 0.5 < MARGIN for word in answer.words),
        outputs["scores"][tokens],
        [word.score for word in answer.words],
    )


def _with_places(tags):
    return " ".join(f"{tag} ({start}-{end})" for tag, start, end in tags)


def _differences(manifest):
    yield from without_windows(manifest)
    yield (
        "Each token of a text has a tag, a score and its place: a word has those of its first "
        "token. They are not joined to words and entities. Special tokens and padding have the tag "
        '"", at -1.'
    )


RECORD = PipelineRecord(
    feeds=TEXTS,
    feeds_frames=True,
    targets=_targets,
    strings=tag,
    expected=_expected,
    differences=_differences,
)
