"""A text and choices to the choice that goes on best."""

from export.pipelines.feeds import TEXTS
from export.pipelines.record import PipelineRecord
from export.text_graphs.pipelines.choose import choose

RECORD = PipelineRecord(
    feeds={
        name: (dtype, (shape[0], "choices", *shape[1:])) for name, (dtype, shape) in TEXTS.items()
    },
    strings=choose,
)
