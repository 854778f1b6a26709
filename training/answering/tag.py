"""`Tag` while it trains: the words of texts to tags."""

import bisect
from typing import NamedTuple

import numpy as np
from keras import ops

from seqkeras.decoding import in_batches
from seqkeras.serving.pipelines.tag import (
    best_tags,
    entities_of,
    joined,
    tokens_of_words,
    words_of_tokenizer,
)
from seqkeras.serving.pipelines.windows import Windows
from seqkeras.serving.results import Tagging, Word
from seqkeras.tokenizers import pad
from seqkeras.training.answering.feeding import fed, only_output
from seqkeras.training.compiling import OncePerModel

NAME = "Tag: text"


class Read(NamedTuple):
    """Words as a model reads them.

    Attributes:
        token_ids: ids of all tokens.
        text: the words, joined.
        places: in the text, of the words that have tokens.
        numbers: numbers of these words.
        first_tokens: the place of the first token of each.
    """

    token_ids: list
    text: str
    places: list
    numbers: list
    first_tokens: list

    def __len__(self):
        return len(self.token_ids)


class Tag:
    """Tuples of words to `Tagging`s; words over the limit are cut off, and have no tags.

    Args:
        run: a `seqkeras.runs.RunFiles`; its model gives logits for each token.
    """

    def __init__(self, run):
        self.run, self.labels = run, run.record.settings["labels"]
        self.scheme = run.record.settings.get("scheme", "IOB2")
        self.best = OncePerModel(_best_of)

    def __call__(self, model, texts, advance=None):
        """Return the answers of a model to texts.

        Args:
            texts: tuples of words.
            advance: called with the number of answers after each batch, for a progress bar.
        """
        rows = [read_words(self.run, words) for words in texts]
        best = self.best(model)

        def tagged(token_ids, lengths, first_tokens):
            found = best(token_ids, lengths)
            return found if len(found) == 2 else _of_chains(*found, first_tokens)

        tags, scores = in_batches(tagged, rows, _padded, advance=advance)
        return [self._tagging(*of_row) for of_row in zip(rows, tags, scores, strict=True)]

    def fits(self, words):
        """Return whether each word has tokens, and nothing is cut off."""
        return len(read_words(self.run, words).places) == len(words)

    def _tagging(self, row, tags, scores):
        words = tuple(
            Word(row.text[start:end], self.labels[tags[token]], start, end, float(scores[token]))
            for (start, end), token in zip(row.places, row.first_tokens, strict=True)
        )
        return Tagging(words, entities_of(row.text, words, self.scheme))


def read_words(run, words):
    """Return the `Read` of a tuple of words; words over the run's limit are cut off."""
    read, *_ = _read(run, words)
    return read


def read_words_and_parts(run, words):
    """Return a `Read`, and (number of the word, first token) of each word that `Tag` finds in a
    text alone, where a Chinese character or a sign is a word."""
    read, places, windows = _read(run, words)
    [own] = windows.tokens
    starts = [start for start, _ in places]
    found, tokens = words_of_tokenizer(read.text, windows, run.tokenizers["text"])
    numbers = [bisect.bisect_right(starts, start) - 1 for start, _ in found]
    return read, [(number, own.start + token) for number, token in zip(numbers, tokens)]


def _read(run, words):
    """Return a `Read`, the offsets of all words in its text, and its `Windows`."""
    text, places = joined(words, NAME)
    limit = run.record.limits["source_length"]
    encoding = run.tokenizers["text"].analyze(text, max_length=limit, truncate=True)
    windows = Windows.of([encoding], stride=1)
    [own] = windows.tokens
    found, tokens = tokens_of_words(windows, places)
    number = {place: number for number, place in enumerate(places)}
    read = Read(
        encoding.token_ids,
        text,
        found,
        [number[place] for place in found],
        [own.start + token for token in tokens],
    )
    return read, places, windows


def _padded(rows):
    return *pad([row.token_ids for row in rows]), [row.first_tokens for row in rows]


def _of_chains(potentials, first_tokens):
    """Return the (B, T) tags and scores of words, at their first tokens."""
    potentials = ops.convert_to_numpy(potentials)
    tags = np.zeros(potentials.shape[:2], int)
    scores = np.zeros(potentials.shape[:2])
    for row, places in enumerate(first_tokens):
        tags[row, places], scores[row, places] = best_tags(potentials[row, places])
    return tags, scores


def _best_of(model):
    def best(token_ids, lengths):
        given = {"token_ids": token_ids, "lengths": lengths}
        logits = only_output(model, fed(model, given))
        if len(logits.shape) == 4:  # the potentials of chains
            return (logits,)
        probabilities = ops.softmax(logits)  # (B, T, C)
        return ops.argmax(probabilities, axis=-1), ops.max(probabilities, axis=-1)

    return best
