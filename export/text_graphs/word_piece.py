"""WordPiece in a graph, as `serving.text.word_piece` makes it.

What BERT does to a text it does to each character by itself, but for the order of several marks on
one letter, which matters to nobody who takes the marks away. So a table of all characters, read off
the tokenizer, says what becomes of each.
"""

import dataclasses
import functools
import json

import numpy as np
import tensorflow as tf

from export.text_graphs.characters import MARK, added_place, characters, every, shifted
from export.text_graphs.lookup import CODE_POINTS, CodePointTable, Trie
from export.text_graphs.requirements import require_word_piece
from export.text_graphs.tokens import TextGraph, Tokens
from serving.text.subwords import CONTRACTIONS, require_library

LETTER, ALONE, SPACE, NOTHING = range(4)  # what a character is, or else it is a list of others
WORD, WITHIN = range(2)  # the roots of the trie
BEYOND = 2**30  # a place behind all texts
SEPARATOR = "\ua66e"  # a letter that stays itself, and that nothing else becomes


class WordPiece(TextGraph):
    """The tokenizer of a `Subwords` of WordPiece.

    Args:
        content: its `tokenizer.json`, parsed.

    Raises:
        ValueError: if it is not BERT's, or has options that a graph does not know.
    """

    most_characters = 128

    def __init__(self, content):
        require_word_piece(content)
        model, self.added_tokens = content["model"], content["added_tokens"]
        self._longest_word = model["max_input_chars_per_word"]
        self.unknown = model["vocab"][model["unk_token"]]
        self._kinds, self._expansions = _tables(
            json.dumps(content["normalizer"]), json.dumps(content["pre_tokenizer"])
        )
        prefix = model["continuing_subword_prefix"]
        sequences = {
            (WORD, *map(ord, token)): place for token, place in model["vocab"].items() if token
        }
        sequences |= {
            (WITHIN, *map(ord, token.removeprefix(prefix))): place
            for token, place in model["vocab"].items()
            if token.startswith(prefix) and token != prefix
        }
        self._trie = Trie(sequences, roots=2)
        own = {each["content"]: each["id"] for each in self.added_tokens}
        special = {each["id"] for each in self.added_tokens if each["special"]}
        self._pieces = [""] * (max([*model["vocab"].values(), *own.values()]) + 1)
        for token, place in (model["vocab"] | own).items():
            if place not in special:
                goes_on = token.startswith(prefix)
                self._pieces[place] = MARK + token[len(prefix) :] if goes_on else f" {token}"
        self._prefix = prefix

    def split(self, texts):
        source = characters(texts, self.added_tokens)
        words = self._words(source)
        lengths, ids = self._longest(words)
        taken, failed = self._begins(words, lengths)
        place = added_place(words.code_points)
        added = place >= 0
        own = tf.gather([0, *(each["id"] for each in self.added_tokens)], place + 1)
        unknown = tf.gather(failed, words.word) & ~added
        taken = tf.where(unknown, words.starts_word, taken | added)
        last = tf.where(unknown, tf.gather(words.ends, words.word) - 1, words.index + lengths - 1)
        last = tf.where(added, words.index, last)
        ids = tf.where(added, own, tf.where(unknown, self.unknown, ids))
        at = tf.boolean_mask(words.index, taken)
        first, last = (tf.gather(words.source, each) for each in (at, tf.gather(last, at)))
        return Tokens.of_rows(
            tf.gather(ids, at),
            tf.gather(source.starts, first),
            tf.gather(source.ends, last),
            tf.gather(source.rows, first),
            source.batch_size,
        )

    def decode(self, token_ids, kept):
        pieces = tf.where(kept, tf.gather(tf.constant(self._pieces), token_ids), "")
        joined = tf.strings.reduce_join(pieces, axis=-1)
        text = tf.strings.regex_replace(joined, "^ ", "")
        text = tf.strings.regex_replace(text, f"^{MARK}", self._prefix)
        text = tf.strings.regex_replace(text, MARK, "")
        for mark in ".?!,":  # as `serving.text.tidy`
            text = tf.strings.regex_replace(text, f" \\{mark}", mark)
        text = tf.strings.regex_replace(text, " ' ", "'")
        for ending in CONTRACTIONS:
            text = tf.strings.regex_replace(text, f" {ending}", ending)
        return text

    def _words(self, source):
        """What becomes of every character, word after word, spaces left out."""
        kinds = self._kinds(source.code_points)
        kinds = tf.where(added_place(source.code_points) >= 0, ALONE, kinds)
        begins, counts, code_points, classes = self._expansions
        owner, copy = every(tf.gather(counts, kinds))
        kind = tf.gather(kinds, owner)
        at = tf.gather(begins, kind) + copy
        itself = kind <= NOTHING
        became = tf.where(itself, tf.gather(source.code_points, owner), tf.gather(code_points, at))
        classes = tf.where(itself, kind, tf.gather(classes, at))
        rows = tf.gather(source.rows, owner)
        before = shifted(classes, -1, SPACE)
        starts = (before != LETTER) | (classes != LETTER) | (rows != shifted(rows, -1, -1))
        kept = classes != SPACE
        became, owner, starts = (tf.boolean_mask(each, kept) for each in (became, owner, starts))
        return _Words.of(became, owner, starts)

    def _longest(self, words):
        """(N,) the length and the id of the longest token that begins at each character."""
        trie, size = self._trie, tf.size(words.code_points)
        nowhere = tf.fill([size], -1)

        def goes_on(step, states, lengths, ids):
            return tf.reduce_any(states >= 0)

        def walk(step, states, lengths, ids):
            at = words.index + step
            inside = at < tf.gather(words.ends, words.word)
            following = tf.gather(words.code_points, tf.minimum(at, size - 1))
            states = tf.where(inside, trie.step(states, following), -1)
            found = trie.value(states)
            ends = found >= 0
            return step + 1, states, tf.where(ends, step + 1, lengths), tf.where(ends, found, ids)

        roots = tf.where(words.starts_word, WORD, WITHIN)
        _, _, lengths, ids = tf.while_loop(
            goes_on, walk, (0, roots, tf.zeros_like(nowhere), nowhere)
        )
        return lengths, ids

    def _begins(self, words, lengths):
        """(N,) where tokens begin, and (W,) which words are not made of tokens."""
        index = words.index

        def goes_on(at, taken):
            return tf.reduce_any(at < words.ends)

        def advance(at, taken):
            inside = at < words.ends
            here = tf.where(inside, at, 0)
            step = tf.where(inside, tf.gather(lengths, here), 0)
            marks = tf.math.unsorted_segment_max(tf.cast(inside, tf.int32), here, tf.size(index))
            stuck = inside & (step == 0)
            at = tf.where(stuck, BEYOND, at + step)
            return at, taken | (marks > 0)

        starts = tf.boolean_mask(index, words.starts_word)
        too_long = words.ends - starts > self._longest_word
        at, taken = tf.while_loop(
            goes_on,
            advance,
            (tf.where(too_long, BEYOND, starts), tf.zeros_like(index, tf.bool)),
        )
        return taken, at >= BEYOND


@dataclasses.dataclass(frozen=True)
class _Words:
    """The N characters of W words, one after the other.

    Attributes:
        code_points: (N,) what they became.
        source: (N,) of which character of the texts each is.
        starts_word: (N,) which of them begin a word.
        index: (N,) their places.
        word: (N,) of which word each is.
        ends: (W,) the place behind each word.
    """

    code_points: tf.Tensor
    source: tf.Tensor
    starts_word: tf.Tensor
    index: tf.Tensor
    word: tf.Tensor
    ends: tf.Tensor

    @classmethod
    def of(cls, code_points, source, starts_word):
        """Of characters, and which of them begin words."""
        index = tf.range(tf.size(code_points))
        starts = tf.boolean_mask(index, starts_word)
        word = tf.cumsum(tf.cast(starts_word, tf.int32)) - 1
        ends = shifted(starts, 1, tf.size(code_points))
        return cls(code_points, source, starts_word, index, word, ends)


@functools.lru_cache(maxsize=4)
def _tables(normalizer, pre_tokenizer):
    """A `CodePointTable` of kinds; and of each kind begin, count, and the lists that they are in.

    Args:
        normalizer, pre_tokenizer: as in a `tokenizer.json`.
    """
    library = require_library()
    tokenizer = library.Tokenizer.from_str(
        json.dumps(
            {
                "version": "1.0",
                "normalizer": json.loads(normalizer),
                "pre_tokenizer": json.loads(pre_tokenizer),
                "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
                "added_tokens": [],
            }
        )
    )
    forms = _forms(tokenizer.normalizer)
    classes = _classes(tokenizer.pre_tokenizer, sorted(set().union(*forms.values())))
    kinds, expansions = np.full(CODE_POINTS, NOTHING), {}
    for code_point, form in forms.items():
        bare = form.strip()
        if bare == chr(code_point) and classes[bare] != SPACE:
            alone = bare != form or classes[bare] == ALONE
            kinds[code_point] = ALONE if alone else LETTER
        elif form:
            expanded = tuple((ord(each), classes[each]) for each in form)
            spaces = all(kind == SPACE for _, kind in expanded)
            kinds[code_point] = (
                SPACE if spaces else expansions.setdefault(expanded, NOTHING + 1 + len(expansions))
            )
    counts = [1, 1, 1, 0, *map(len, expansions)]
    begins = np.cumsum([0, *counts[:-1]])
    listed = np.array([(0, 0)] * 3 + [each for expanded in expansions for each in expanded])
    return CodePointTable(kinds), (
        begins.astype("int32"),
        np.array(counts, "int32"),
        listed[:, 0].astype("int32"),
        listed[:, 1].astype("int32"),
    )


def _forms(normalizer, block=4096):
    """Code point -> what becomes of it."""
    forms = {}
    for first in range(0, CODE_POINTS, block):
        each = [
            code_point
            for code_point in range(first, first + block)
            if not 0xD800 <= code_point < 0xE000 and code_point != ord(SEPARATOR)
        ]
        if each:
            became = normalizer.normalize_str(SEPARATOR.join(map(chr, each))).split(SEPARATOR)
            forms.update(zip(each, became, strict=True))
    return forms | {ord(SEPARATOR): SEPARATOR}


def _classes(pre_tokenizer, distinct):
    """Character -> LETTER, ALONE or SPACE."""
    classes = dict.fromkeys(distinct, SPACE)
    for _, (first, end) in pre_tokenizer.pre_tokenize_str("".join(distinct)):
        beside = pre_tokenizer.pre_tokenize_str(f"a{distinct[first]}")
        kind = LETTER if end > first + 1 or len(beside) == 1 else ALONE
        classes.update(dict.fromkeys(distinct[first:end], kind))
    return classes
