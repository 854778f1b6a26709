"""Embed: a text, or frames, to a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import ExpectedAnswer, PipelineRecord, TextModel
from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.signatures import by_strings, output_name, outputs_of, strings
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.pipelines.embed import WordSettings

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature


def embed(source: TextModel) -> dict[str, Signature]:
    """Map "text" to its "embedding", of length 1 if the settings say so."""
    reader = Reader(source.tokenizers["text"], source.limits.source_length)
    model = source.signatures["serving_default"]
    name = output_name(model, source.settings)

    def function(text, truncate):
        encoded = reader(checked(text), truncate=truncate)
        vectors = outputs_of(model, encoded)[name]
        if source.settings.get("normalize", True):
            norms = tf.norm(vectors, axis=-1, keepdims=True)
            vectors = tf.math.divide_no_nan(vectors, norms)
        return {"embedding": vectors}, encoded.errors

    [spec] = [output for output in model.outputs if output.name == name]
    outputs = [TensorSpec("embedding", "float32", spec.shape)]
    return by_strings(function, [strings("text")], outputs)


RECORD = PipelineRecord(
    feeds=TEXTS,
    feeds_frames=True,
    logits=lambda settings: (),
    vectors=True,
    strings=embed,
    expected=lambda outputs, answer, *_: ExpectedAnswer(
        numbers=outputs["embedding"], expected_numbers=answer.vector
    ),
    word_length=lambda settings: settings.get("word_length", WordSettings.word_length),
)
