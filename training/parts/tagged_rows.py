"""The token ids of sentences, and for each token the index of its tag."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqkeras.data.batches import Sequences
from seqkeras.data.conll import continued
from seqkeras.tokenizers.encode_all import special_ids_around, splits_at_spaces
from seqkeras.training.parts.encoded_texts import MOST_WORDS, in_parts
from seqkeras.training.parts.read_words import read_words, read_words_and_parts

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.training.parts.tagged_sentences import Example

NO_TAG = -1  # the target of a token that is not the first of its word


class TaggedRows:
    """What a model of tags learns from sentences.

    A tokenizer that ends words at spaces reads each pair of a word and a tag once.

    Args:
        run: has the tokenizer "text", the limit of tokens, and the settings "labels" and "scheme".

    Call arguments:
        examples: list of `Example`.

    Returns:
        `Sequences` of the token ids, and of the targets, `NO_TAG` for tokens without one.

    Attributes:
        cut: how many sentences lost words, since they have too many tokens.
    """

    def __init__(self, run: RunFiles):
        self.cut = 0
        self._run, self._limit = run, run.record.limits["source_length"]
        self._scheme = run.record.settings["scheme"]
        labels = run.record.settings["labels"]
        self._index_of = {label: index for index, label in enumerate(labels)}
        tokenizer = run.tokenizers["text"]
        self._reads_by_word = splits_at_spaces(tokenizer)
        self._before, self._after = special_ids_around(tokenizer)
        self._inner = slice(len(self._before), -len(self._after) or None)
        self._of_word = functools.lru_cache(MOST_WORDS)(self._word)

    def __call__(self, examples: Sequence[Example]) -> tuple[Sequences, Sequences]:
        parts = []
        for some in in_parts(examples):
            pairs = [self._read(row.text, row.target) for row in some]
            parts.append(
                (
                    Sequences([token_ids for token_ids, _ in pairs]),
                    Sequences([targets for _, targets in pairs], padding=NO_TAG),
                )
            )
        token_ids, targets = zip(*parts)
        return Sequences.joined(token_ids), Sequences.joined(targets)

    def _read(self, words, tags):
        """Return the token ids and the targets of a sentence, as long as the limit lets it be."""
        if not self._reads_by_word:
            return self._sentence(words, tags)
        token_ids, targets = [*self._before], [NO_TAG] * len(self._before)
        for of_word in map(self._of_word, words, tags):
            token_ids += of_word[0]
            targets += of_word[1]
        token_ids += self._after
        targets += [NO_TAG] * len(self._after)
        return (
            (token_ids, targets) if len(token_ids) <= self._limit else self._sentence(words, tags)
        )

    def _word(self, word, tag):
        """Return the token ids and the targets of a word alone, without what stands around a
        text."""
        token_ids, targets = self._sentence((word,), (tag,))
        return token_ids[self._inner], targets[self._inner]

    def _sentence(self, words, tags):
        if gives_parts_tags(self._scheme):
            read, parts = read_words_and_parts(self._run, words)
        else:
            read, parts = read_words(self._run, words), ()
        targets, begun = [NO_TAG] * len(read), set()
        for number, token in parts:
            tag = tags[number]
            targets[token] = self._index_of[
                continued(tag, self._scheme) if number in begun else tag
            ]
            begun.add(number)
        for number, token in zip(read.numbers, read.first_tokens, strict=True):
            targets[token] = self._index_of[tags[number]]
        self.cut += len(read) == self._limit and len(read.numbers) < len(words)
        return read.token_ids, targets


def gives_parts_tags(scheme: str | None) -> bool:
    """Return whether the parts of a word have tags of their own beside that of its first token,
    which in IOBES and BILOU would be another one for a word of several parts."""
    return scheme in ("IOB2", None)
