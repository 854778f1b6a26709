"""Signatures on strings, which call those on token ids.

Does not support windows over long texts, words and entities of tags, nor chains of tags. A refused
text has its reason in the output `error`, and the others of its batch are answered; "truncate" cuts
long ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqkeras.export.pipelines import record_of

if TYPE_CHECKING:
    from seqkeras.export.pipelines.record import TextModel
    from seqkeras.export.signatures import Signature


def text_signatures(pipeline: str, texts: TextModel) -> dict[str, Signature]:
    """Return signatures on strings of a SavedModel by name, with the pipeline's answers.

    There are none of a pipeline without such signatures, or one that reads frames. A ValueError
    says why a tokenizer can not be put into a graph.
    """
    make = record_of(pipeline).strings
    if make is None:
        return {}
    if {"words", "characters"} & set(texts.tokenizers):
        raise ValueError(f"text graph: {pipeline} of words or trees is not known.")
    if not {"text", "source"} & set(texts.tokenizers):
        return {}  # the inputs are no texts
    return make(texts)
