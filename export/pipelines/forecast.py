"""A series to the values that follow it."""

from export.pipelines.feeds import NUMBERS, PADDING
from export.pipelines.record import PipelineRecord

RECORD = PipelineRecord(
    feeds={"window": NUMBERS, "known": ("float32", ("batch", "horizon", "covariates"))} | PADDING
)
