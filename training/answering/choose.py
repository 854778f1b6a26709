"""`Choose` while it trains: texts with choices to the choices that fit."""

import itertools
from typing import NamedTuple

import numpy as np

from seqkeras.decoding import in_batches
from seqkeras.serving.pipelines.choose import choice_of
from seqkeras.serving.pipelines.model import token_arrays
from seqkeras.training.answering.feeding import fed, only_output
from seqkeras.training.compiling import OncePerModel

ROWS = 64  # texts with choices that a model reads at once


class Choose:
    """Dictionaries of "text" and "choices" to `Choice`s; what is over the limit is cut off.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model takes inputs of (texts, choices, length).
    """

    def __init__(self, run):
        self.run = run
        self.logits = OncePerModel(_logits_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        logits_of, answers = self.logits(model), [None] * len(texts)
        sizes = [len(text["choices"]) for text in texts]
        for size in sorted({*sizes}):
            places = [place for place, own in enumerate(sizes) if own == size]
            rows = [_Row(choice_encodings(self.run, texts[place])) for place in places]
            [logits] = in_batches(logits_of, rows, _arrays, ROWS, advance)
            for place, own in zip(places, logits, strict=True):
                answers[place] = choice_of(texts[place]["choices"], own)
        return answers

    def fits(self, text):
        """Return whether the text and each choice have tokens, and nothing is cut off."""
        tokenizer, limit = self.run.tokenizers["text"], self.run.record.limits["source_length"]
        parts = text["text"], *text["choices"]
        pairs = zip(itertools.repeat(text["text"]), text["choices"])
        return all(map(tokenizer.encode, parts)) and all(
            len(tokenizer.analyze(*pair)) <= limit for pair in pairs
        )


class _Row(NamedTuple):
    """The `Encoding`s of a text with each choice; as long as the longest."""

    encodings: list

    def __len__(self):
        return max(map(len, self.encodings))


def choice_encodings(run, text):
    """Return the `Encoding` of a text with each of its choices; what is over the run's limit is
    cut."""
    tokenizer, limit = run.tokenizers["text"], run.record.limits["source_length"]
    return [
        tokenizer.analyze(text["text"], choice, max_length=limit, truncate=True)
        for choice in text["choices"]
    ]


def _arrays(rows):
    arrays = token_arrays([encoding for row in rows for encoding in row.encodings])
    return (
        {
            name: np.reshape(values, (len(rows), -1, *values.shape[1:]))
            for name, values in arrays.items()
        },
    )


def _logits_of(model):
    def logits(arrays):
        return (only_output(model, fed(model, arrays)),)

    return logits
