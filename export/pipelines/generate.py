"""Generate: a prompt to the text that follows it."""

from seqkeras.export.feeds import LANGUAGE_MODEL
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.pipelines.targets import TEXTS
from seqkeras.export.text_graphs.pipelines.generate import generate


def _differences(manifest):
    yield "Why a text ends, `finish` of `serving`, is not said."


def _input_limits(manifest, unit):
    limits = manifest.limits
    most = min(limits.source_length, limits.target_length - 1)
    return f"A prompt of at most {most} {unit}; with what follows at most {limits.target_length}."


RECORD = PipelineRecord(
    model_kind=LANGUAGE_MODEL,
    targets=lambda settings: TEXTS,
    strings=generate,
    differences=_differences,
    input_limits=_input_limits,
)
