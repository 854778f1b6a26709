"""`Embed` while it trains, of a bidirectional language model: texts to vectors."""

import numpy as np
from keras import ops

from seqkeras.serving.pipelines.embed import WordSettings, embedding_of_words
from seqkeras.serving.pipelines.spelled_words import (
    SpelledText,
    SpelledWords,
    spelled,
    words_within,
)
from seqkeras.training.compiling import OncePerModel

NAME = "Embed: text"
BATCH = 64


class Embed:
    """Texts to `Embedding`s with their words; words over the limit are cut off.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model is a `seqkeras.models.BiLM`.
    """

    def __init__(self, run):
        settings = WordSettings(**run.record.settings)
        self.characters = run.tokenizers["characters"]
        self.limit = run.record.limits["source_length"]
        self.word_length, self.normalize = settings.word_length, settings.normalize
        self.layers = OncePerModel(_layers_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        layers_of, answers = self.layers(model), []
        for start in range(0, len(texts), BATCH):
            rows = [self.read(text) for text in texts[start : start + BATCH]]
            layers = ops.convert_to_numpy(layers_of(SpelledWords.packing.arrays(rows)))
            answers += [
                embedding_of_words(row, np.array(of_row), self.normalize, True)
                for row, of_row in zip(rows, layers, strict=True)
            ]
            if advance:
                advance(len(rows))
        return answers

    def fits(self, text):
        """Return whether a text has words, and no more than the limit."""
        places = words_within(text, NAME, self.limit + 1, True)
        return len(places) <= self.limit

    def read(self, text):
        """Return the `SpelledText` of a text."""
        places = words_within(text, NAME, self.limit, True)
        return SpelledText(text, places, spelled(self.characters, text, places, self.word_length))


def _layers_of(model):
    return lambda arrays: model.represent(arrays)
