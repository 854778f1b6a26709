"""A text, or frames, to a tag for each word or frame."""

from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.tag import tag

RECORD = PipelineRecord(feeds=TEXTS, feeds_frames=True, strings=tag)
