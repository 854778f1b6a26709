"""Forecast: a series to the values that follow it."""

from export.pipelines.feeds import NUMBERS, PADDING
from export.pipelines.record import PipelineRecord
from export.pipelines.targets import Targets, are_numbers, nearness

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
