"""Embed: a text, or frames, to a vector."""

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.expected import ExpectedAnswer
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.text_graphs.pipelines.embed import embed
from seqkeras.serving.pipelines.embed import WordSettings


def _expected(outputs, answer, pipeline, given):
    return ExpectedAnswer(numbers=outputs["embedding"], expected_numbers=answer.vector)


RECORD = PipelineRecord(
    feeds=TEXTS,
    feeds_frames=True,
    logits=lambda settings: (),
    vectors=True,
    strings=embed,
    expected=_expected,
    word_length=lambda settings: settings.get("word_length", WordSettings.word_length),
)
