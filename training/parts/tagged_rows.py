"""The token ids of sentences, and for each token the index of its tag."""

from __future__ import annotations

import array
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.data.batches import Sequences
from seqkeras.data.conll import continued
from seqkeras.tokenizers.encode_all import MOST_PARTS, special_ids_around, splits_at_spaces
from seqkeras.training.parts.encoded_texts import in_parts
from seqkeras.training.parts.read_words import read_words, read_words_and_parts

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.training.parts.tagged_sentences import Example

NO_TAG = -1  # the target of a token that is not the first of its word
FIRST, FURTHER, NONE = 0, 1, 2  # share in a word's tag: the tag, what goes on with it, nothing
BEFORE, AFTER, NO_WORD = "", " ", ""  # in place of words: the special tokens around a text


class TaggedRows:
    """What a model of tags learns from sentences.

    A tokenizer that ends words at spaces reads each word once.

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
        self._scheme, labels = run.record.settings["scheme"], run.record.settings["labels"]
        self._index_of = {label: index for index, label in enumerate(labels)}
        further = [self._index_of[continued(label, self._scheme)] for label in labels]
        self._targets = np.array([[*range(len(labels))], further, [NO_TAG] * len(labels)], "int32")
        tokenizer = run.tokenizers["text"]
        self._reads_by_word = splits_at_spaces(tokenizer)
        self._splits_in_words = any(map(str.isalnum, getattr(tokenizer, "added_tokens", ())))
        self._around = special_ids_around(tokenizer)
        self._words = self._no_words()

    def __call__(self, examples: Sequence[Example]) -> tuple[Sequences, Sequences]:
        read = self._by_word if self._reads_by_word else self._sentences
        token_ids, targets = zip(*map(read, in_parts(examples)))
        return Sequences.joined(token_ids), Sequences.joined(targets)

    def _by_word(self, examples):
        """Return the token ids and the targets of sentences, those over the limit as `_sentences`
        does."""
        if len(self._words) > MOST_PARTS:
            self._words = self._no_words()
        number_of, index_of = self._words, {**self._index_of, NO_WORD: 0}
        words = _mapped(number_of, ((BEFORE, *row.text, AFTER) for row in examples))
        tags = _mapped(index_of, ((NO_WORD, *row.target, NO_WORD) for row in examples))
        sizes = np.array([len(row.text) + 2 for row in examples], int)
        ids_of, shares_of = number_of.rows()
        ends = np.append(0, np.cumsum(ids_of.lengths[words]))[np.append(0, np.cumsum(sizes))]
        lengths = np.diff(ends)
        fits = lengths <= self._limit
        kept = np.repeat(fits, sizes)
        ids, shares = ids_of.compact(words[kept]), shares_of.compact(words[kept])
        targets = self._targets[shares.values, np.repeat(tags[kept], ids.lengths)]
        both = (
            Sequences.flat(ids.values, lengths[fits]),
            Sequences.flat(targets, lengths[fits], padding=NO_TAG),
        )
        if fits.all():
            return both
        longer = self._sentences([row for row, is_short in zip(examples, fits) if not is_short])
        order = np.argsort(np.argsort(~fits, kind="stable"))
        token_ids, targets = zip(both, longer)
        return Sequences.joined(token_ids).chosen(order), Sequences.joined(targets).chosen(order)

    def _no_words(self):
        before, after = self._around
        words = _Words(self._alone)
        words.add(BEFORE, before, [NONE] * len(before))
        words.add(AFTER, after, [NONE] * len(after))
        return words

    def _alone(self, word):
        """Return the token ids of a word without what stands around a text, and the share of each
        in the word's tag."""
        if word.isascii() and word.isalnum() and not self._splits_in_words:
            ids = self._run.tokenizers["text"].encode(word)
            return ids, [FIRST, *[NONE] * (len(ids) - 1)]
        read, _, shares = self._tokens((word,))
        before, after = map(len, self._around)
        inner = slice(before, len(shares) - after)
        return read.token_ids[inner], shares[inner]

    def _sentences(self, examples):
        """Return the token ids and the targets of sentences, as long as the limit lets them be."""
        token_ids, targets = [], []
        for row in examples:
            read, numbers, shares = self._tokens(row.text)
            indices = np.array([self._index_of[tag] for tag in row.target])
            self.cut += len(read) == self._limit and len(read.numbers) < len(row.text)
            token_ids.append(read.token_ids)
            targets.append(self._targets[shares, indices[numbers]].tolist())
        return Sequences(token_ids), Sequences(targets, padding=NO_TAG)

    def _tokens(self, words):
        """Return a `Read`, and for each token the number of a word and its share in the tag."""
        if gives_parts_tags(self._scheme):
            read, parts = read_words_and_parts(self._run, words)
        else:
            read, parts = read_words(self._run, words), ()
        numbers, shares, begun = [0] * len(read), [NONE] * len(read), set()
        for number, token in parts:
            numbers[token], shares[token] = number, FURTHER if number in begun else FIRST
            begun.add(number)
        for number, token in zip(read.numbers, read.first_tokens, strict=True):
            numbers[token], shares[token] = number, FIRST
        return read, numbers, shares


class _Words(dict):
    """Words that are read once: each has a number, that of its row.

    Args:
        read: word -> its token ids, and the share of each in the word's tag.
    """

    def __init__(self, read: Callable[[str], tuple[Sequence[int], Sequence[int]]]):
        super().__init__()
        self._read = read
        self._lengths, self._ids = array.array("q"), array.array("i")
        self._shares = array.array("b")

    def __missing__(self, word: str) -> int:
        return self.add(word, *self._read(word))

    def add(self, word: str, token_ids: Sequence[int], shares: Sequence[int]) -> int:
        self[word] = number = len(self)
        self._lengths.append(len(token_ids))
        self._ids.extend(token_ids)
        self._shares.extend(shares)
        return number

    def rows(self) -> tuple[Sequences, Sequences]:
        """Return the token ids, and the shares, by number."""
        lengths = np.array(self._lengths)
        ids, shares = np.array(self._ids), np.array(self._shares)
        return Sequences.flat(ids, lengths), Sequences.flat(shares, lengths)


def _mapped(numbers, rows):
    """Return the numbers of strings in all rows."""
    strings = itertools.chain.from_iterable(rows)
    return np.fromiter(map(numbers.__getitem__, strings), "int64")


def gives_parts_tags(scheme: str | None) -> bool:
    """Return whether the parts of a word have tags of their own beside that of its first token,
    which in IOBES and BILOU would be another one for a word of several parts."""
    return scheme in ("IOB2", None)
