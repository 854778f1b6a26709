"""What export knows of each pipeline: a record in the file of its name.

A new pipeline is a name in `serving.manifest.pipelines`, a class in `serving.pipelines`, and a
record here.
"""

import functools
import importlib
import re

from export.pipelines.record import PipelineRecord
from serving.manifest.pipelines import PIPELINE_TEXTS

__all__ = ["PipelineRecord", "record_of"]


@functools.cache
def record_of(pipeline):
    """The `PipelineRecord` of a pipeline.

    Args:
        pipeline: its name, one of `serving.manifest.pipelines.PIPELINE_TEXTS`.

    Raises:
        ValueError: if there is no such pipeline.
    """
    if pipeline not in PIPELINE_TEXTS:
        raise ValueError(
            f"pipeline must be one of {', '.join(PIPELINE_TEXTS)}; received {pipeline!r}."
        )
    return importlib.import_module(f".{_file_of(pipeline)}", __name__).RECORD


def _file_of(pipeline):
    """fill_mask of FillMask."""
    return re.sub("(?<!^)(?=[A-Z])", "_", pipeline).lower()
