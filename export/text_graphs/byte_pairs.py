"""Byte-level byte-pair encoding in a graph, as `serving.text.byte_pairs` makes it."""

import functools

import numpy as np
import tensorflow as tf

from export.text_graphs.characters import (
    characters,
    every,
    shifted,
    special_place,
    without_spaces_before,
)
from export.text_graphs.lookup import CODE_POINTS, CodePointTable, PairTable
from export.text_graphs.merging import Parts, merged
from export.text_graphs.tokens import Tokens
from serving.text.subwords import require_library

LETTER, NUMBER, OTHER, SPACE, SPECIAL = range(5)
ENDINGS = ("s", "t", "re", "ve", "m", "ll", "d")  # of English, behind an apostrophe


class BytePairs:
    """The tokenizer of a `Subwords` of byte-level pairs, GPT-2's or RoBERTa's.

    A special token that takes the space behind it is refused in a text.

    Args:
        content: its `tokenizer.json`, parsed.

    Raises:
        ValueError: if it normalizes, or splits words in another way, or lacks a byte.
    """

    def __init__(self, content):
        model, splits = content["model"], content["pre_tokenizer"] or {}
        added = content["added_tokens"]
        self.special_tokens = [each for each in added if not each["rstrip"]]
        self.refused = [each["content"] for each in added if each["rstrip"]]
        plain = splits.get("type") == "ByteLevel" and splits.get("use_regex", True)
        if content["normalizer"] or not plain or splits.get("add_prefix_space"):
            raise ValueError(
                "BytePairs: in a graph words must be split as GPT-2's are, and nothing normalized."
            )
        self.vocabulary = vocabulary = model["vocab"]
        missing = [each for each in byte_characters() if each not in vocabulary]
        if missing:
            raise ValueError(
                f"BytePairs: the vocabulary must hold every byte; it lacks {len(missing)}."
            )
        self._byte_ids = np.array([vocabulary[each] for each in byte_characters()], "int32")
        pairs = [tuple(e.split(" ")) if isinstance(e, str) else tuple(e) for e in model["merges"]]
        ranks = {}
        for rank, (left, right) in enumerate(pairs):
            ranks[vocabulary[left], vocabulary[right]] = rank
        self._ranks = PairTable(ranks or {(0, 0): -1})
        self._results = [vocabulary[left + right] for left, right in pairs] or [0]
        self._classes = _classes()

    def __call__(self, texts):
        """(B,) strings to `Tokens`."""
        for token in self.refused:
            found = tf.strings.regex_full_match(texts, f"(?s).*{_quoted(token)}.*")
            message = f"text: must not hold {token}, which is taken by token ids alone."
            check = tf.debugging.Assert(~tf.reduce_any(found), [message])
            with tf.control_dependencies([check]):
                texts = tf.identity(texts)
        source = self._characters(texts)
        place = special_place(source.code_points)
        special = place >= 0
        classes = tf.where(special, SPECIAL, self._classes(source.code_points))
        words = tf.cumsum(tf.cast(_starts(source, classes), tf.int32)) - 1
        owner, values = _utf_8(source.code_points, special)
        ids = tf.gather(self._byte_ids, values)
        if self.special_tokens:
            own = tf.gather([each["id"] for each in self.special_tokens], tf.maximum(place, 0))
            ids = tf.where(tf.gather(special, owner), tf.gather(own, owner), ids)
        parts = merged(
            Parts(ids, tf.gather(words, owner), owner, owner), self._ranks, self._results
        )
        return Tokens.of_rows(
            parts.ids,
            tf.gather(source.starts, parts.starts),
            tf.gather(source.ends, parts.ends),
            tf.gather(source.rows, parts.starts),
            source.batch_size,
        )

    def _characters(self, texts):
        source = characters(texts, [each["content"] for each in self.special_tokens])
        takes = [each["lstrip"] for each in self.special_tokens]  # as RoBERTa's <mask> does
        if not any(takes):
            return source
        place = special_place(source.code_points)
        special = place >= 0
        spaces = ~special & (self._classes(source.code_points) == SPACE)
        takes = special & tf.gather(takes, tf.maximum(place, 0))
        return without_spaces_before(source, spaces, takes)

    def decode(self, token_ids, kept):
        """(B, T) ids to (B,) strings, of those that are kept; special tokens have no text."""
        size = max([*self.vocabulary.values(), *(e["id"] for e in self.special_tokens)]) + 1
        values = {character: value for value, character in enumerate(byte_characters())}
        pieces = [b""] * size
        for token, place in self.vocabulary.items():
            if set(token) <= set(values):
                pieces[place] = bytes(values[character] for character in token)
        for each in self.special_tokens:
            pieces[each["id"]] = b""
        pieces = tf.where(kept, tf.gather(tf.constant(pieces), token_ids), "")
        joined = tf.strings.reduce_join(pieces, axis=-1)
        return tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8", errors="replace")


def _quoted(token):
    return "".join(f"\\{each}" if not each.isalnum() else each for each in token)


def _starts(source, classes):
    """(N,) where words begin, as GPT-2's regular expression finds them.

        's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

    Reference: https://github.com/openai/gpt-2 (encoder.py)
    """
    code_points, rows = source.code_points, source.rows

    def apart(by):  # is the character so far on of another text or a special token, or none?
        return (rows != shifted(rows, by, -1)) | (shifted(classes, by, SPECIAL) == SPECIAL)

    space, alone = code_points == ord(" "), classes == SPECIAL
    begins = apart(-1) | alone
    after_space = shifted(space, -1, False) & ~begins
    other = classes != shifted(classes, -1, SPECIAL)
    last_space = ~apart(1) & (shifted(classes, 1, SPECIAL) != SPACE)
    starts = tf.where(
        classes == SPACE, begins | other | last_space, begins | (other & ~after_space)
    )
    apostrophe = starts & (code_points == ord("'"))
    for ending in ENDINGS:
        found = apostrophe
        for by, letter in enumerate(ending, start=1):
            found &= shifted(code_points, by, -1) == ord(letter)
            found &= rows == shifted(rows, by, -1)
        size = len(ending) + 1
        starts |= shifted(found, -size, False)
        for by in range(1, size):
            starts &= ~shifted(found, -by, False)
    return starts


def _utf_8(code_points, single):
    """The bytes of code points, and which code point each is of; of a `single` one, a byte of 0."""
    code_points = tf.where(single, 0, code_points)
    size = 1 + sum(tf.cast(code_points >= least, tf.int32) for least in (0x80, 0x800, 0x10000))
    owner, place = every(size)
    size, code_point = tf.gather(size, owner), tf.gather(code_points, owner)
    six_bits = tf.bitwise.right_shift(code_point, 6 * (size - 1 - place))
    lead = tf.gather([0, 0, 0xC0, 0xE0, 0xF0], size)
    return owner, tf.where(place == 0, lead + six_bits, 0x80 + six_bits % 64)


@functools.cache
def byte_characters():
    """The characters that stand for the bytes, in their order.

    Reference: https://github.com/openai/gpt-2 (encoder.py, bytes_to_unicode)
    """
    seen = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [value for value in range(256) if value not in seen]
    return [chr(0x100 + hidden.index(v)) if v in hidden else chr(v) for v in range(256)]


@functools.cache
def _classes():
    """The `CodePointTable` of LETTER, NUMBER, OTHER and SPACE, as the library splits words."""
    splitter = require_library().pre_tokenizers.ByteLevel(add_prefix_space=False)
    everything = [c for c in range(CODE_POINTS) if not 0xD800 <= c < 0xE000]
    classes = np.full(CODE_POINTS, SPACE)
    # A word is of one class, but for the space before it.
    for _, (first, end) in splitter.pre_tokenize_str("".join(map(chr, everything))):
        for kind, beside in ((LETTER, "x"), (NUMBER, "1"), (OTHER, "!")):
            if len(splitter.pre_tokenize_str(beside + chr(everything[end - 1]))) == 1:
                classes[everything[first:end]] = kind
    classes[ord(" ")] = SPACE
    return CodePointTable(classes)
