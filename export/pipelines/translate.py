"""Translate: a text, or frames, to a text."""

from seqkeras.export.feeds import ENCODER_DECODER
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.pipelines.targets import TEXTS
from seqkeras.export.text_graphs.pipelines.translate import translate

RECORD = PipelineRecord(
    model_kind=ENCODER_DECODER,
    needs_targets=True,
    targets=lambda settings: TEXTS,
    strings=translate,
)
