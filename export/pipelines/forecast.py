"""Forecast: a series to the values that follow it."""

from seqkeras.export.feeds import NUMBERS, PADDING
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.pipelines.targets import Targets, are_numbers, nearness

TARGETS = Targets(
    {"1 - relative error": nearness(lambda answer: answer.values)},
    "a list of (horizon, targets) numbers",
    are_numbers,
)
RECORD = PipelineRecord(
    feeds={"window": NUMBERS, "known": ("float32", ("batch", "horizon", "covariates"))} | PADDING,
    logits=lambda settings: (),
    targets=lambda settings: TARGETS,
)
