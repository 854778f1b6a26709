"""A text with masks to what may stand there."""

from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.fill_mask import fill_mask

RECORD = PipelineRecord(feeds=TEXTS, strings=fill_mask)
