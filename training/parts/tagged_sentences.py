"""Sentences whose words have tags, from a user's file: as they are learned, and what is wrong."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras.data.conll import (
    begun_inside,
    intended_tag,
    is_iob1,
    read_sentences,
    scheme_of,
    to_iob2,
)
from seqkeras.data.stored import Stored
from seqkeras.data.texts import DataError
from seqkeras.serving.entities import is_tag
from seqkeras.terminal import one_line
from seqkeras.training.console import console
from seqkeras.training.parts.encoded_texts import MOST_WORDS
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.data.conll import Sentence

ODD = 0.05  # share of words whose tags do not fit the scheme of the others, at most: typing errors
BLOCK = 10  # neighbouring sentences that stay in one part
FEWEST_BLOCKS = 5  # of the part that is held out
INSIDE = {"IOB2": "I-", "IOBES": "I- or E-", "BILOU": "I- or L-", "BMES": "M- or E-"}


class Example(NamedTuple):
    """The words of a sentence, their tags, and the number of the document."""

    text: tuple[str, ...]
    target: Sequence[str]
    document: int = 0


def in_documents(examples: Sequence[Example], held_out: float) -> tuple[str, list[range]]:
    """Return the noun of neighbouring examples that stay in one part, and the places of each such
    group.

    Documents, where the file marks two or more; else blocks of `BLOCK` sentences, or of fewer in a
    small file, so that the held-out part has several blocks; single sentences in a tiny one.

    Args:
        examples: the `Example`s of a file, in its order.
        held_out: share of the examples that is held out.
    """
    numbers, places = np.array([example.document for example in examples]), range(len(examples))
    firsts = (np.flatnonzero(np.diff(numbers)) + 1).tolist()
    if firsts:
        return "document", [places[slice(*ends)] for ends in itertools.pairwise([0, *firsts, None])]
    size = int(min(BLOCK, max(1, held_out * len(examples) // FEWEST_BLOCKS)))
    groups = [places[start : start + size] for start in places[::size]]
    return "block" if size > 1 else "sentence", groups


class TaggedSentences:
    """The sentences of a file, without words that have no token.

    Args:
        path: path of the file.
        options: a `TaggingOptions`.
        has_token: a function: word -> whether the tokenizer finds a token in it.

    Attributes:
        sentences: a `Stored` of `seqkeras.data.conll.Sentence`.
        left_out: what was wrong with those that are not among them, as texts.
    """

    def __init__(self, path: Path | str, options: Any, has_token: Callable[[str], bool]):
        self.path, self.skip_bad = path, options.skip_bad
        columns = options.word_column, options.tag_column
        of_known_word = functools.lru_cache(MOST_WORDS)(has_token)
        counts, lost = Counter(), []

        def keep(sentences):
            return Stored(map(with_tokens, sentences))

        def with_tokens(sentence):
            kept = _with_tokens(sentence, of_known_word)
            counts.update(kept.tags)
            lost.append(len(sentence.words) - len(kept.words))
            return kept

        self.sentences, self.left_out = read_sentences(path, *columns, options.skip_bad, keep)
        self.scheme = scheme_of(counts, ODD)
        self._odd_tags = {tag for tag in counts if self.scheme and not is_tag(tag, self.scheme)}
        self._is_iob1 = self.scheme == "IOB2" and is_iob1(
            sentence.tags for sentence in self.sentences
        )
        self._count_begun_inside = functools.lru_cache(MOST_WORDS)(begun_inside)
        how = "sentences are read without such words"
        self._say(lost, "words have no token", "word has no token", how)
        if self.scheme is None:
            self._say_other_spelling(counts)
        elif not self.skip_bad:
            begun, letter = [*map(self._begun_inside, self.sentences)], INSIDE[self.scheme]
            how = "I- is read as B-" if self.scheme == "IOB2" else "entities are read from there on"
            self._say(begun, f"entities begin with {letter}", f"entity begins with {letter}", how)

    def example(self, sentence: Sentence) -> Example:
        """Return the `Example` of a sentence.

        Raises:
            DataError: if it can not be used, or, with --skip-bad, is not as it should be.
        """
        scheme, tags = self.scheme, sentence.tags
        if not sentence.words:
            raise DataError(f"{self._where(sentence)}: no word of the sentence has a token.")
        if not self._odd_tags.isdisjoint(tags):
            number = next(n for n, tag in enumerate(tags) if tag in self._odd_tags)
            tag = tags[number]
            meant = intended_tag(tag)
            way_out = f"; write {meant!r:.40}" if is_tag(meant, scheme) else ""
            raise DataError(
                f"{self.path}, line {sentence.lines[number]}: the word "
                f"{sentence.words[number]!r:.40} has the tag {tag!r:.40}; nearly all others are of "
                f"{scheme}{way_out}."
            )
        if self.skip_bad and self._begun_inside(sentence):
            where = self._where(sentence)
            raise DataError(f"{where}: an entity of the sentence begins with {INSIDE[scheme]}.")
        if scheme == "IOB2" and self._count_begun_inside(tags):
            tags = to_iob2(tags)
        return Example(sentence.words, tags, sentence.document)

    def _where(self, sentence):
        return f"{self.path}, line {sentence.line}"

    def _begun_inside(self, sentence):
        """Return how many entities begin with the tag of an inside or an end; in IOB1 they may."""
        if not self.scheme or self._is_iob1:
            return 0
        return self._count_begun_inside(sentence.tags)

    def _say_other_spelling(self, counts):
        """Say so where tags would spell entities, were they written as a scheme writes them.

        Args:
            counts: tag -> how many words have it, a `Counter`.
        """
        others, intended = [tag for tag in counts if intended_tag(tag) != tag], Counter()
        for tag, count in counts.items():
            intended[intended_tag(tag)] += count
        scheme = scheme_of(intended, ODD)
        if scheme and others:
            spellings = ", ".join(f"{tag!r:.40} as {intended_tag(tag)!r:.40}" for tag in others[:3])
            console.print(
                f"  {one_line(self.path)}: the tags spell no entities as they stand; for entities "
                f"in {scheme} write {spellings}{' …' if len(others) > 3 else ''}"
            )

    def _say(self, counts, plural, singular, how):
        """Say how many words or entities are read otherwise than they stand there.

        Args:
            counts: how many there are in each of the sentences.
            plural, singular: plural and singular of `counted`.
            how: they are read.
        """
        if any(counts):
            first = next(sentence.line for sentence, count in zip(self.sentences, counts) if count)
            console.print(
                f"  {one_line(self.path)}: {counted(sum(counts), plural, singular)}, the first in "
                f"the sentence of line {first:,}; {how}"
            )


def _with_tokens(sentence, has_token):
    """Return a sentence without the words that have no token, which no model reads."""
    has_tokens = [*map(has_token, sentence.words)]
    if all(has_tokens):
        return sentence
    words, tags, lines = (tuple(itertools.compress(column, has_tokens)) for column in sentence[1:4])
    return sentence._replace(words=words, tags=tags, lines=lines)
