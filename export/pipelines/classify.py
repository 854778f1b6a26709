"""A text, a pair of texts, a tree or frames to labels, or to a number."""

from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.classify import classify

RECORD = PipelineRecord(feeds=TEXTS, feeds_frames=True, strings=classify)
