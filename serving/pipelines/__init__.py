"""Pipelines: inputs in, answers out.

A list is several inputs, anything else is one; a tuple, or a dictionary of the names below, is one
input of several parts. A pipeline has no state between calls, so several threads may share one.

    pipeline    an input                              its answer (`serving.results`)
    Translate   text                                  Translation
    Generate    text, which may be empty, or turns    Generation
    Classify    text, text and pair, or a tree        Classification
    Tag         text, or a tuple of its words         Tagging
    Answer      question and context                  Span
    Choose      text and choices                      Choice
    Embed       text                                  Embedding
    FillMask    text with masks                       Filling
    Forecast    series, or series and known           Forecasting

Texts are read by the tokenizer "source" and "target" of Translate, and "text" of the others; for
Classify, Tag and Embed it may be a table of words. Where there is a table "words", Classify reads
trees in brackets, "(3 (2 A) (2 film))", whose labels may be left out, and Answer reads words with
their characters, by the tables "words" and "characters". By a table "characters" alone, Embed reads
the words of a bidirectional language model.
Where a graph takes `frames`, Classify, Tag, Embed and Translate read arrays of numbers (length,
features), and have no tokenizer for them.

What a manifest's `settings` may hold for them; those without a default must be there:

    Generate    start: whether each prompt begins with the manifest's start_id, and not only an
                    empty one (false)
                prefix: whether the model reads a prompt both ways; export says so (false)
                turns: what stands before each turn of a conversation, {"user", "assistant",
                    "system"}, and after it, "end"; then a text is what the user says, and
                    {"messages": [{"role", "content"}, ...]} a conversation; null for texts that
                    are gone on from as they are (null)
    Translate   rows: what the columns of a table are, where a source is one row of it
                    (`serving.rows`); null for texts and for frames of numbers (null)
    Classify    output: of the graph; the only one if there is no other
                labels: labels of the logits; two may have one logit, the second's; none for one
                    number, a regression
                multi_label: several at once (false)
                threshold: of several at once, the probability of those that are given (0.5)
                none_of_these: whether a last logit is that of none of the labels (false)
                pairs: true for pairs of texts only, false for single ones, null for both (null)
                stride: how many tokens a window begins after the one before, for single texts of
                    any length; null refuses or cuts what is over the limit (null)
                rows: what the columns of a table are, where frames are rows of one
                    (`serving.rows`); null for frames of numbers (null)
                tree_shape: of a model of trees, "balanced", "left" or "right" for plain texts, of
                    which such a tree is made; null for trees in brackets (null)
    Tag         labels: the tags
                output
                scheme: "IOB2", "IOBES", "BILOU" or "BMES"; null for tags that spell no entities
                    ("IOB2")
                words: "tokenizer" for its own, or "spaces" for what stands between them
                    ("tokenizer")
                stride: how many tokens a window begins after the one before, for texts of any
                    length; null refuses or cuts what is over the limit (null). Hugging Face's
                    default is none too; its number is the number of tokens that windows share
                rows: what the columns of a table are, where frames are rows of one
                    (`serving.rows`); null for frames of numbers (null)
    Answer      start, end: outputs of the graph
                window: tokens that are read at once, special ones too (384)
                stride: how many tokens of a context a window begins after the one before (128)
                question_length, answer_length: the most tokens, or words (64, 30)
                word_length: of words, the most characters that are read (16)
                no_answer: whether the model knows questions that have none (false)
                no_answer_threshold: how much better than none an answer must be, in logits (0)
                A model of words reads no windows, and knows no question without an answer.
    Choose      output
    Embed       output
                normalize: whether vectors have length 1 (true)
                word_length: of words, the most characters that are read (50)
    FillMask    output
                mask_token ("[MASK]")
    Forecast    output
                quantiles: what the last axis of the output is; none for no such axis
                rows: what the columns of a table are, where series are rows of one
                    (`serving.rows`); null for series of numbers (null)
                naive_errors: of each series of the training, the mean error of the last value as
                    the forecast of the next, for each target, by which MASE is measured; answers
                    do not depend on it ({})
"""

import os
from pathlib import Path

from ..checks import shown
from ..manifest import MANIFEST, UPGRADE, BundleError, read_bundle, verify_files
from ..opening import Runtime
from .answer import Answer
from .choose import Choose
from .classify import Classify
from .embed import Embed
from .fill_mask import FillMask
from .forecast import Forecast
from .generate import Generate
from .pipeline import Pipeline
from .tag import Tag
from .translate import Translate

__all__ = [
    "PIPELINES",
    "Answer",
    "Choose",
    "Classify",
    "Embed",
    "FillMask",
    "Forecast",
    "Generate",
    "Pipeline",
    "Tag",
    "Translate",
]

PIPELINES = {
    pipeline.__name__: pipeline
    for pipeline in (Translate, Generate, Classify, Tag, Answer, Choose, Embed, FillMask, Forecast)
}
"""The pipelines: name in a manifest -> class."""


def open_bundle(
    path, precision=None, threads=None, providers=None, cache_bytes=None, *, before=None
):
    """Open a bundle and return its pipeline: what `serving.load` does; `before`: see `Runtime`."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"load: path must be a bundle's folder; received {shown(path)}.")
    folder = Path(path)
    runtime = Runtime(
        **({} if precision is None else {"precision": precision}),
        threads=threads,
        providers=() if providers is None else providers,
        before=before,
        cache_bytes=cache_bytes,
    )

    def open_pipeline(manifest):
        if manifest.pipeline not in PIPELINES:
            raise BundleError(
                f"asks for the pipeline {manifest.pipeline!r}; this seqkeras-serving has "
                f"{', '.join(PIPELINES)}",
                where=folder,
                subject=MANIFEST,
                advice=UPGRADE,
            )
        roles = PIPELINES[manifest.pipeline].roles
        graphs = runtime.graphs_of(manifest)
        files = [file for role in roles if role in graphs for file in graphs[role].files]
        verify_files(folder, manifest, dict.fromkeys([*files, *manifest.tokenizers.values()]))
        return PIPELINES[manifest.pipeline](folder, manifest, runtime)

    return read_bundle(folder, open_pipeline)
