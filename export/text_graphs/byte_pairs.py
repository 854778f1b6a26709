"""Byte-level byte-pair encoding in a graph, with the tokens of `serving.text.byte_pairs`."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from seqkeras.export.text_graphs.characters import added_place, characters, copies, shifted
from seqkeras.export.text_graphs.lookup import CODE_POINTS, CodePointTable, PairTable
from seqkeras.export.text_graphs.merging import MOST_STEPS, Parts, merged
from seqkeras.export.text_graphs.requirements import pairs_of, require_byte_pairs, trimming
from seqkeras.export.text_graphs.row_errors import first_of
from seqkeras.export.text_graphs.tokens import TextGraph, Tokens
from seqkeras.serving.text.subwords import require_library, special_tokens
from seqkeras.tensors import Tensor

LETTER, NUMBER, OTHER, SPACE, ADDED = range(5)
TOO_LONG = f"text: a word takes more than {MOST_STEPS} merges, one after the other: shorten it."
ENDINGS = ("s", "t", "re", "ve", "m", "ll", "d")  # of English, after an apostrophe


class BytePairs(TextGraph):
    """The tokenizer of a `Subwords` of byte-level pairs, GPT-2's or RoBERTa's.

    `content` is its `tokenizer.json`, parsed. A ValueError says that it normalizes texts, splits
    words differently, lacks a byte, or has options that the graph does not support.
    """

    most_characters = 32

    def __init__(self, content: dict[str, Any]):
        require_byte_pairs(content, byte_characters())
        self.added_tokens = content["added_tokens"]
        self.vocabulary = vocabulary = content["model"]["vocab"]
        self._special = special_tokens(content)
        self._byte_ids = np.array(
            [vocabulary[character] for character in byte_characters()], "int32"
        )
        pairs = pairs_of(content["model"])
        ranks = {}
        for rank, (left, right) in enumerate(pairs):
            ranks[vocabulary[left], vocabulary[right]] = rank
        self._ranks = PairTable(ranks or {(0, 0): -1})
        self._results = [vocabulary[left + right] for left, right in pairs] or [0]
        self._classes = _classes()
        self._trimming = trimming(content)
        self._spaces = _Spaces(vocabulary, self.added_tokens)

    def split(self, texts: Any) -> Tokens:
        source = characters(texts, self.added_tokens)
        added_index = added_place(source.code_points)
        added = added_index >= 0
        classes = tf.where(added, ADDED, self._classes(source.code_points))
        words = tf.cumsum(tf.cast(_starts(source, classes), tf.int32)) - 1
        owner, values = _utf_8(source.code_points, added)
        ids = tf.gather(self._byte_ids, values)
        if self.added_tokens:
            special = tf.gather(
                [token["id"] for token in self.added_tokens], tf.maximum(added_index, 0)
            )
            ids = tf.where(tf.gather(added, owner), tf.gather(special, owner), ids)
        parts, unfinished = merged(
            Parts(ids, tf.gather(words, owner), owner, owner), self._ranks, self._results
        )
        starts, ends = tf.gather(source.starts, parts.starts), tf.gather(source.ends, parts.ends)
        rows = tf.gather(source.rows, parts.starts)
        if self._trimming:
            added_index = tf.gather(added_index, parts.starts)
            starts, ends = self._trimmed(parts.ids, added_index, rows, starts, ends)
        late = tf.math.unsorted_segment_max(
            tf.cast(unfinished, tf.int32), rows, tf.size(source.errors)
        )
        errors = first_of(source.errors, tf.where(late > 0, TOO_LONG, ""))
        return Tokens.of_rows(parts.ids, starts, ends, rows, errors)

    def _trimmed(self, ids, added_index, rows, starts, ends):
        """Return the offsets of tokens without the spaces at their ends.

        Reference: https://github.com/huggingface/tokenizers (pre_tokenizers/byte_level.rs,
        process_offsets)
        """
        before, behind = self._spaces(ids, added_index, ends - starts)
        if self._trimming["add_prefix_space"]:  # a single first space may be the tokenizer's own
            first = (rows != shifted(rows, -1, -1)) | (starts == 0)
            before = tf.where(first & (before == 1), 0, before)
        starts = tf.minimum(starts + before, ends)
        ends = tf.where(ends >= behind, tf.maximum(ends - behind, starts), ends)
        return starts, ends

    @functools.cached_property
    def pieces(self) -> list[bytes]:
        size = max([*self.vocabulary.values(), *(e["id"] for e in self.added_tokens)]) + 1
        values = {character: value for value, character in enumerate(byte_characters())}
        pieces = [b""] * size
        added_ids = {token["content"]: token["id"] for token in self.added_tokens}
        for token, token_id in (self.vocabulary | added_ids).items():
            is_bytes = set(token) <= set(values)
            if token not in self._special:
                characters = map(values.__getitem__, token)
                pieces[token_id] = bytes(characters) if is_bytes else token.encode()
        return pieces

    def tidied(self, joined: Tensor) -> Tensor:
        return tf.strings.unicode_transcode(joined, "UTF-8", "UTF-8", errors="replace")


class _Spaces:
    """The numbers of spaces that tokens begin and end with."""

    def __init__(self, vocabulary: Mapping[str, int], added_tokens: Sequence[Any]):
        self._before, self._behind = np.zeros((2, max(vocabulary.values()) + 1), "int32")
        for token, index in vocabulary.items():
            self._before[index], self._behind[index] = _spaces_around(token, byte_characters()[32])
        contents = [token["content"] for token in added_tokens] or [""]
        self._around_added = np.array([_spaces_around(content) for content in contents], "int32")
        self._widths = np.array(list(map(len, contents)), "int32")

    def __call__(self, ids: Tensor, added_index: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (N,) spaces before and after.

        Args:
            ids: (N,) of tokens.
            added_index: (N,) index of the added token, or -1.
            widths: (N,) in characters, with the spaces that belong to an added token.
        """
        added, added_index = added_index >= 0, tf.maximum(added_index, 0)
        of_pair = tf.where(added, 0, ids)
        around = tf.gather(self._around_added, added_index)
        taken = widths - tf.gather(self._widths, added_index)
        return (
            tf.where(added, around[:, 0] + taken, tf.gather(self._before, of_pair)),
            tf.where(added, around[:, 1], tf.gather(self._behind, of_pair)),
        )


def _spaces_around(token, space=None):
    return len(token) - len(token.lstrip(space)), len(token) - len(token.rstrip(space))


def _starts(source, classes):
    """Return (N,) where words begin, as GPT-2's regular expression finds them.

        's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

    Reference: https://github.com/openai/gpt-2 (encoder.py)
    """
    code_points, rows = source.code_points, source.rows

    def is_boundary(by):  # whether the character `by` places on is in another text, or added
        return (rows != shifted(rows, by, -1)) | (shifted(classes, by, ADDED) == ADDED)

    space, alone = code_points == ord(" "), classes == ADDED
    begins = is_boundary(-1) | alone
    after_space = shifted(space, -1, False) & ~begins
    other = classes != shifted(classes, -1, ADDED)
    last_space = ~is_boundary(1) & (shifted(classes, 1, ADDED) != SPACE)
    starts = tf.where(
        classes == SPACE, begins | other | last_space, begins | (other & ~after_space)
    )
    apostrophe = starts & (code_points == ord("'"))
    for ending in ENDINGS:
        is_ending = apostrophe
        for by, letter in enumerate(ending, start=1):
            is_ending &= shifted(code_points, by, -1) == ord(letter)
            is_ending &= rows == shifted(rows, by, -1)
        size = len(ending) + 1
        starts |= shifted(is_ending, -size, False)
        for by in range(1, size):
            starts &= ~shifted(is_ending, -by, False)
    return starts


def _utf_8(code_points, single):
    """Return bytes of code points, and each byte's code point; a `single` one has the byte 0."""
    code_points = tf.where(single, 0, code_points)
    size = 1 + sum(tf.cast(code_points >= least, tf.int32) for least in (0x80, 0x800, 0x10000))
    owner, index = copies(size)
    size, code_point = tf.gather(size, owner), tf.gather(code_points, owner)
    six_bits = tf.bitwise.right_shift(code_point, 6 * (size - 1 - index))
    lead = tf.gather([0, 0, 0xC0, 0xE0, 0xF0], size)
    return owner, tf.where(index == 0, lead + six_bits, 0x80 + six_bits % 64)


@functools.cache
def byte_characters() -> list[str]:
    """Return the characters that represent the 256 bytes, in order.

    Reference: https://github.com/openai/gpt-2 (encoder.py, bytes_to_unicode)
    """
    seen = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [value for value in range(256) if value not in seen]
    return [chr(0x100 + hidden.index(v)) if v in hidden else chr(v) for v in range(256)]


@functools.cache
def _classes():
    """Return the `CodePointTable` of LETTER, NUMBER, OTHER and SPACE of the library."""
    splitter = require_library().pre_tokenizers.ByteLevel(add_prefix_space=False)
    everything = [c for c in range(CODE_POINTS) if not 0xD800 <= c < 0xE000]
    classes = np.full(CODE_POINTS, SPACE)
    # All characters of a word have one class, except for the space before it.
    for _, (first, end) in splitter.pre_tokenize_str("".join(map(chr, everything))):
        for kind, example in ((LETTER, "x"), (NUMBER, "1"), (OTHER, "!")):
            if len(splitter.pre_tokenize_str(example + chr(everything[end - 1]))) == 1:
                classes[everything[first:end]] = kind
    classes[ord(" ")] = SPACE
    return CodePointTable(classes)
