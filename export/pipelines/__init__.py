"""A record for each pipeline of what export must know, in the file of its name.

A new pipeline, such as `Rank`, is written in five files:

    serving/manifest/pipelines.py   its name
    serving/results.py              its answer
    serving/pipelines/rank.py       its class
    serving/pipelines/__init__.py   the class and its settings, listed
    export/pipelines/rank.py        its record, with its signature on strings if it has one
"""

import functools
import importlib
import re

from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.serving.manifest.pipelines import PIPELINE_TEXTS

__all__ = ["PipelineRecord", "record_of"]


@functools.cache
def record_of(pipeline: str) -> PipelineRecord:
    """Return the `PipelineRecord` of a pipeline.

    Args:
        pipeline: name of a class of `seqkeras.serving.pipelines`.

    Returns:
        The record.

    Raises:
        ValueError: if there is no pipeline of that name.

    Example:
        >>> from seqkeras.export.pipelines import record_of
        >>> record_of("Translate").model_kind
        'encoder-decoder'
        >>> record_of("translate")
        Traceback (most recent call last):
            ...
        ValueError: pipeline must be one of Translate, Generate, Classify, Tag, Answer, ...
    """
    if pipeline not in PIPELINE_TEXTS:
        raise ValueError(
            f"pipeline must be one of {', '.join(PIPELINE_TEXTS)}; received {pipeline!r}."
        )
    file = re.sub("(?<!^)(?=[A-Z])", "_", pipeline).lower()  # fill_mask of FillMask
    return importlib.import_module(f".{file}", __name__).RECORD
