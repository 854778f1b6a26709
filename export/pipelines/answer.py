"""A question and a context to the part of the context that answers."""

from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.answer import answer

RECORD = PipelineRecord(feeds=TEXTS, strings=answer)
