"""Signatures on strings, around those on token ids. They hold core operators of TensorFlow only.

Leaves out what several calls make of one text: windows over long contexts, words and entities of
tags. A text that is too long is refused.
"""

from export.text_graphs.pipelines.answer import answer
from export.text_graphs.pipelines.choose import choose
from export.text_graphs.pipelines.classify import classify
from export.text_graphs.pipelines.embed import embed
from export.text_graphs.pipelines.fill_mask import fill_mask
from export.text_graphs.pipelines.generate import generate
from export.text_graphs.pipelines.tag import tag
from export.text_graphs.pipelines.translate import translate

# Pipeline -> what makes its signatures; another pipeline has none.
MAKERS = {
    "Answer": answer,
    "Choose": choose,
    "Classify": classify,
    "Embed": embed,
    "FillMask": fill_mask,
    "Generate": generate,
    "Tag": tag,
    "Translate": translate,
}


def text_signatures(
    pipeline, signatures, tokenizers, limits, decoding, settings=None, text_prefix=None
):
    """The signatures on strings of a SavedModel, as the pipeline of that name answers.

    Args:
        pipeline: its name; all but Forecast have signatures.
        signatures: name -> `Signature` on token ids.
        tokenizers: role -> a tokenizer of `serving.text`; "source" and "target", or "text".
        limits, decoding, settings, text_prefix: as in the manifest.

    Returns:
        name -> `Signature`, none for another pipeline, or one that reads frames.

    Raises:
        ValueError: if a tokenizer can not be put into a graph.
    """
    if pipeline not in MAKERS:
        return {}
    if {"words", "characters"} & set(tokenizers):
        raise ValueError(f"text graph: {pipeline} of words or trees is not known.")
    if not {"text", "source"} & set(tokenizers):
        return {}  # what is read is no text
    options = dict(settings or {})
    if pipeline == "Translate":
        options["text_prefix"] = text_prefix
    return MAKERS[pipeline](signatures, tokenizers, limits, decoding, options)
