"""Embed: a text, or frames, to a vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import ExpectedAnswer, PipelineRecord
from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.signatures import by_strings, output_name, outputs_of, strings
from seqkeras.serving.manifest import TensorSpec
from seqkeras.serving.pipelines.embed import WordSettings

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature
    from seqkeras.serving.manifest import DecodingDefaults, Limits
    from seqkeras.serving.text import Tokenizer


def embed(
    signatures: Mapping[str, Signature],
    tokenizers: Mapping[str, Tokenizer],
    limits: Limits,
    decoding: DecodingDefaults,
    settings: Mapping[str, Any],
) -> dict[str, Signature]:
    """Map "text" to its "embedding", of length 1 if the settings say so."""
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]
    name = output_name(model, settings)

    def function(text, truncate):
        encoded = reader(checked(text), truncate=truncate)
        vectors = outputs_of(model, encoded)[name]
        if settings.get("normalize", True):
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
