"""A prompt to the text that follows it."""

from export.pipelines.record import LANGUAGE_MODEL, PipelineRecord
from export.text_graphs.pipelines.generate import generate

RECORD = PipelineRecord(model_kind=LANGUAGE_MODEL, strings=generate)
