"""The work of a pipeline for an input."""

from typing import Any

from ..pipelines.pipeline import Pipeline


def work_of(pipeline: Pipeline, options: dict[str, Any]) -> int:
    """Return the most tokens of all beams, or samples, of an answer.

        max(num_beams, n_best) max_new_tokens

    A model that answers in a single pass generates one. A wrong option counts as its default: the
    pipeline refuses it.
    """
    manifest = pipeline.manifest
    most = manifest.limits.target_length
    new = min(_count(options, "max_new_tokens", most), most)
    beams = 1 if options.get("sample") or options.get("stop") else manifest.decoding.num_beams
    return max(_count(options, "num_beams", beams), _count(options, "n_best", 1)) * new


def _count(options, name, default):
    value = options.get(name)
    return value if isinstance(value, int) and value > 0 else default
