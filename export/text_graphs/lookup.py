"""Tables in a graph, without `tf.lookup`, whose tables need an initialisation."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from seqkeras.tensors import Tensor

CODE_POINTS = 0x110000
PAGE = 256
NO_STRING = "\ufdef"  # a noncharacter; no string starts with it
MOST_BYTES = 256  # of a token, the kernel's limit


def find(ordered: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether each value is in an ascending list, and its index."""
    ordered = tf.convert_to_tensor(ordered, values.dtype)
    index = tf.searchsorted(ordered, tf.reshape(values, [-1]))
    index = tf.reshape(tf.minimum(index, tf.size(ordered) - 1), tf.shape(values))
    return tf.gather(ordered, index) == values, index


class PairTable:
    """(a, b) -> a number, for pairs of numbers under 2^31, one at least; -1 for unknown pairs."""

    def __init__(self, pairs: Any):
        keys = np.array([(a << 31) + b for a, b in pairs], "int64")
        order = np.argsort(keys)
        self.keys = keys[order]
        self.values = np.fromiter(pairs.values(), "int32", len(pairs))[order]

    def as_constants(self) -> Any:
        """Return the table as constants of this graph, for several calls."""
        table = copy.copy(self)
        table.keys, table.values = tf.constant(self.keys), tf.constant(self.values)
        return table

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        key = tf.bitwise.left_shift(tf.cast(a, tf.int64), tf.constant(31, tf.int64))
        known, index = find(self.keys, key + tf.cast(b, tf.int64))
        return tf.where(known & (a >= 0), tf.gather(self.values, index), -1)


class CodePointTable:
    """Code point -> a number, of (1114112,) integers, in pages; equal pages are stored once."""

    def __init__(self, numbers: Mapping[int, int]):
        pages = np.asarray(numbers, "int32").reshape(-1, PAGE)
        pages, places = np.unique(pages, axis=0, return_inverse=True)
        self.pages, self.places = pages.reshape(-1), places.reshape(-1).astype("int32")

    def __call__(self, code_points: Tensor) -> Tensor:
        page = tf.gather(self.places, code_points // PAGE)
        return tf.gather(self.pages, page * PAGE + code_points % PAGE)


class StringTable:
    """Non-empty string -> a number, or the default.

    Implemented by the WordPiece kernel, with whole words as its tokens.
    """

    def __init__(self, numbers: Mapping[str, int], default: int):
        self._long = {text: n for text, n in numbers.items() if len(text.encode()) > MOST_BYTES}
        short = {text: n for text, n in numbers.items() if text and text not in self._long}
        self._kernel = word_pieces([*short, NO_STRING], NO_STRING, NO_STRING)
        self._numbers = np.array([*short.values(), default], "int32")

    def __call__(self, strings: Tensor) -> Tensor:
        """Map (N,) strings to (N,) int32."""
        found_numbers = tf.gather(self._numbers, self._kernel.tokenize(strings).values)
        for string, number in self._long.items():
            found_numbers = tf.where(strings == string, number, found_numbers)
        return found_numbers


def word_pieces(tokens: Sequence[str], prefix: str, unknown: str) -> Any:
    """Return the WordPiece kernel that splits words; a token's id is its index.

    A prefix marks tokens that continue a word. The token `unknown`, one of them, stands for a word
    that tokens can not compose. A ValueError says that one has too many bytes for the kernel.
    """
    longest = max(tokens, key=lambda token: len(token.removeprefix(prefix).encode()))
    if len(longest.removeprefix(prefix).encode()) > MOST_BYTES:
        raise ValueError(
            f"text graph: a token must have at most {MOST_BYTES} bytes; received {longest[:20]!r}…"
        )
    return tf_text.FastWordpieceTokenizer(
        tokens,
        suffix_indicator=prefix,
        max_bytes_per_word=2**31 - 1,
        token_out_type=tf.int32,
        unknown_token=unknown,
        no_pretokenization=True,
    )
