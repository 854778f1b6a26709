"""What export knows of a pipeline: one record, which the stages of export read."""

import dataclasses
from collections.abc import Callable, Mapping

from export.pipelines.feeds import FRAMES

ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS = "encoder-decoder", "language model", "single pass"


@dataclasses.dataclass(frozen=True)
class PipelineRecord:
    """A pipeline of `serving`, as export needs to know it.

    Attributes:
        model_kind: which models the pipeline serves, by the way they answer (`export.families`).
        feeds: what it can feed to a model of any kind: name -> (dtype, symbolic shape). A model
            takes of these what it wants.
        feeds_frames: whether a pipeline that has no tokenizer feeds frames instead.
        strings: makes the signatures on strings of a SavedModel: takes (signatures, tokenizers,
            limits, decoding, settings) and returns name -> `Signature`; None where there are none.
    """

    model_kind: str = SINGLE_PASS
    feeds: Mapping = dataclasses.field(default_factory=dict)
    feeds_frames: bool = False
    strings: Callable | None = None

    def feeds_of(self, tokenizers=None):
        """What the pipeline feeds. `tokenizers` are its own, by role; None: those of texts."""
        if tokenizers is not None and not tokenizers and self.feeds_frames:
            return FRAMES
        return self.feeds
