"""Translate: a text, or frames, to a text."""

from export.pipelines.record import ENCODER_DECODER, PipelineRecord
from export.pipelines.targets import TEXTS
from export.text_graphs.pipelines.translate import translate

RECORD = PipelineRecord(
    model_kind=ENCODER_DECODER,
    needs_targets=True,
    targets=lambda settings: TEXTS,
    strings=translate,
)
