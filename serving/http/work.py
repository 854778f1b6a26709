"""The work of a pipeline for an input."""

from typing import Any

from ..pipelines.pipeline import Pipeline
from .bounds import Bounds

LIGHTER = 16  # times as much work as a light request takes may be on its way
NARROWER = 8  # times as many beams as a light request has


def work_of(pipeline: Pipeline, options: dict[str, Any], streams: bool = False) -> int:
    """Return the most tokens of all beams, or samples, of an answer.

        max(num_beams, n_best) max_new_tokens

    A model that answers in a single pass generates one. A wrong option counts as its default: the
    pipeline refuses it.

    Args:
        pipeline: which answers.
        options: of the call.
        streams: whether the answer is a stream, which is greedy.
    """
    most = pipeline.manifest.limits.target_length
    new = min(_count(options, "max_new_tokens", most), most)
    return _rows_of(pipeline, options, streams) * new


def is_light(
    pipeline: Pipeline, options: dict[str, Any], count: int, bounds: Bounds, streams: bool = False
) -> bool:
    """Return whether a request for so many answers is light.

    It takes at most a sixteenth of `max_work`, and has at most an eighth of `max_batch` beams and
    samples.
    """
    work = count * work_of(pipeline, options, streams)
    rows = count * _rows_of(pipeline, options, streams)
    return LIGHTER * work <= bounds.max_work and NARROWER * rows <= max(bounds.max_batch, NARROWER)


def _rows_of(pipeline, options, streams):
    is_greedy = streams or options.get("sample") or options.get("stop")
    beams = 1 if is_greedy else pipeline.manifest.decoding.num_beams
    return max(_count(options, "num_beams", beams), _count(options, "n_best", 1))


def _count(options, name, default):
    value = options.get(name)
    return value if isinstance(value, int) and value > 0 else default
