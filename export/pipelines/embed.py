"""Embed: a text, or frames, to a vector."""

from export.pipelines.expected import ExpectedAnswer
from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.embed import embed
from serving.pipelines.embed import WordSettings


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
