"""The words of a sentence as a model of tags reads them."""

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from seqkeras.runs import RunFiles
from seqkeras.serving.pipelines.tag import joined, tokens_of_words, words_of_tokenizer
from seqkeras.serving.pipelines.windows import Windows

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

    def __len__(self) -> int:
        return len(self.token_ids)


def read_words(run: RunFiles, words: Sequence[str]) -> Read:
    """Return the `Read` of a tuple of words; words over the run's limit are cut off."""
    read, *_ = _read(run, words)
    return read


def read_words_and_parts(run: RunFiles, words: Sequence[str]) -> tuple[Read, Any]:
    """Return a `Read`, and (number of the word, first token) of each word that `Tag` finds in a
    text alone, where a Chinese character or a sign is a word."""
    read, places, windows = _read(run, words)
    [window] = windows.tokens
    starts = [start for start, _ in places]
    word_spans, tokens = words_of_tokenizer(read.text, windows, run.tokenizers["text"])
    numbers = [bisect.bisect_right(starts, start) - 1 for start, _ in word_spans]
    return read, [(number, window.start + token) for number, token in zip(numbers, tokens)]


def _read(run, words):
    """Return a `Read`, the offsets of all words in its text, and its `Windows`."""
    text, places = joined(words, NAME)
    limit = run.record.limits["source_length"]
    encoding = run.tokenizers["text"].analyze(text, max_length=limit, truncate=True)
    windows = Windows.of([encoding], stride=1)
    [window] = windows.tokens
    word_spans, tokens = tokens_of_words(windows, places)
    number = {span: number for number, span in enumerate(places)}
    read = Read(
        encoding.token_ids,
        text,
        word_spans,
        [number[span] for span in word_spans],
        [window.start + token for token in tokens],
    )
    return read, places, windows
