"""Translate: a text, or frames, to a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seqkeras.export.feeds import ENCODER_DECODER
from seqkeras.export.pipelines.record import PipelineRecord, TextModel
from seqkeras.export.pipelines.targets import TEXTS
from seqkeras.export.text_graphs.characters import ANYTHING, VISIBLE, checked
from seqkeras.export.text_graphs.generating import generated, generating
from seqkeras.export.text_graphs.reading import Reader, writer
from seqkeras.export.text_graphs.signatures import outputs_of

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature


def translate(source: TextModel) -> dict[str, Signature]:
    """Map "text" to "text" and "score": log-probability, with beams over the length penalty."""
    reader = Reader(source.tokenizers["source"], source.limits.source_length)
    target = writer(source.tokenizers["target"])
    pattern, refusal = _accepted_text(source.text_prefix)

    def answer(model, text, truncate, **drawn):
        encoded = reader(checked(text, accepted=pattern, refusal=refusal), truncate=truncate)
        results = outputs_of(model, encoded, **drawn)
        ids, is_text = generated(results, source.decoding.end_id)
        return target.decode(ids, is_text), results["scores"], encoded.errors

    return generating(answer, source.signatures)


def _accepted_text(prefix):
    """Return the regular expression of valid texts, and the message for others."""
    if prefix is None:
        return ANYTHING, "must not be empty or blank."
    values = "|".join(re.escape(value) for value in prefix.values)
    return (
        rf"(?s)(?:{values}){re.escape(prefix.separator)}.*{VISIBLE}.*",
        f"must be a {prefix.name}, then {prefix.separator} and something after it; "
        f"known: {', '.join(prefix.values)}.",
    )


RECORD = PipelineRecord(
    model_kind=ENCODER_DECODER,
    needs_targets=True,
    targets=lambda settings: TEXTS,
    strings=translate,
)
