"""A text, or frames, to a vector."""

from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.embed import embed

RECORD = PipelineRecord(feeds=TEXTS, feeds_frames=True, strings=embed)
