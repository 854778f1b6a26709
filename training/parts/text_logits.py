"""The logits that a model gives texts, or the words of sentences."""

import functools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from seqkeras.runs import RunFiles
from seqkeras.tokenizers import pad
from seqkeras.training.answering.graphs import graph_of
from seqkeras.training.console import progress_bar
from seqkeras.training.parts.encoded_texts import in_parts
from seqkeras.training.parts.read_words import read_words
from seqkeras.training.parts.text_rows import text_encoding

BATCH = 64  # texts at once


def logits_of_texts(
    model: keras.Model, run: RunFiles, texts: Sequence[Any], doing: str
) -> list[np.ndarray]:
    """Return the logits of each text, (V,), or of words, (words, V), or the potentials of a chain,
    (words, V + 1, V), with NaN for words that the model does not read.

    Args:
        model: a model that reads texts by tokens.
        run: its `seqkeras.runs.RunFiles`, of the pipeline `Tag` where the logits are of words.
        texts: as the examples of the task have them.
        doing: words beside the progress bar.
    """
    graph, rows_of_logits = graph_of(model, run), []
    with progress_bar() as bar:
        part = bar.add_task(doing, total=len(texts))
        for some in in_parts(texts):
            rows_of_logits += _logits(graph, run, some, functools.partial(bar.advance, part))
    return rows_of_logits


def _logits(graph, run, texts, advance):
    """Return the logits of some texts, which are read at once and answered in the order of their
    lengths."""
    tags = run.record.pipeline == "Tag"
    read = read_words if tags else text_encoding
    rows = [read(run, text) for text in texts]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    rows_of_logits = [np.empty(0)] * len(rows)
    names, [output] = [spec.name for spec in graph.inputs], graph.outputs
    for start in range(0, len(rows), BATCH):
        chosen = order[start : start + BATCH]
        arrays = _padded([rows[index] for index in chosen])
        inputs = {name: arrays[name] for name in names}
        batch = ops.convert_to_numpy(graph.function(**inputs)[output.name])
        for index, logits in zip(chosen, batch, strict=True):
            if tags:
                logits = _of_words(rows[index], logits, len(texts[index]))
            rows_of_logits[index] = logits
        advance(len(chosen))
    return rows_of_logits


def _of_words(row, logits, count):
    """Return the logits of words from those of tokens."""
    word_logits = np.full((count, *logits.shape[1:]), np.nan, "float32")
    word_logits[row.numbers] = logits[row.first_tokens]
    return word_logits


def _padded(rows):
    token_ids, lengths = pad([row.token_ids for row in rows])
    segments = [getattr(row, "segment_ids", [0] * len(row.token_ids)) for row in rows]
    return {"token_ids": token_ids, "lengths": lengths, "segment_ids": pad(segments)[0]}
