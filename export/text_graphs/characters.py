"""A batch of texts as one list of code points."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from seqkeras.export.families.saved_models import required
from seqkeras.export.text_graphs.lookup import find
from seqkeras.export.text_graphs.row_errors import errors_of
from seqkeras.tensors import Tensor

BLANK = r"\s\v\x1c-\x1f\x{85}\pZ"  # what Python's str.strip() takes away
VISIBLE = rf"[^{BLANK}]"
ANYTHING = rf"(?s).*{VISIBLE}.*"
FIRST_NONCHARACTER = 0xFDD0  # of 32 that Unicode reserves for internal use
NONCHARACTERS = r"[\x{FDD0}-\x{FDEF}]"
MOST_ADDED_TOKENS = 31
MARK = chr(FIRST_NONCHARACTER + MOST_ADDED_TOKENS)  # stands before an added token
# Unicode's property White_Space: the spaces that an added token may absorb.
WHITE_SPACE = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029]
WHITE_SPACE += [0x202F, 0x205F, 0x3000]


@dataclasses.dataclass(frozen=True)
class Characters:
    """The code points of B texts; an added token is one, from `FIRST_NONCHARACTER` on."""

    code_points: tf.Tensor  # (N,) int32
    rows: tf.Tensor  # (N,) int64, the index of each one's text
    starts: tf.Tensor  # (N,) int32, offset in the text
    ends: tf.Tensor  # (N,) int32
    errors: tf.Tensor  # (B,) strings, why a text is refused; it has no code points then


@dataclasses.dataclass(frozen=True)
class Texts:
    """The texts of a batch after their first checks."""

    values: tf.Tensor  # (B,) strings; "" for a refused one
    errors: tf.Tensor  # (B,) strings, why a text is refused; "" for the others
    name: str

    @classmethod
    def of(cls, values: Tensor, errors: Tensor, name: str = "text") -> Texts:
        """Return the `Texts` of values and their errors."""
        return cls(tf.where(errors == "", values, ""), errors, name)

    def repeated(self, count: Tensor) -> Texts:
        """Return each text `count` times."""
        return Texts(tf.repeat(self.values, count), tf.repeat(self.errors, count), self.name)


def checked(
    texts: Any,
    name: str = "text",
    accepted: str = ANYTHING,
    refusal: str = "must not be empty or blank.",
) -> Texts:
    """Map (B,) strings to `Texts`; the graph raises an InvalidArgumentError if there is none.

    Each text must match the regular expression `accepted`; others get the message `refusal`.
    """
    texts = require(texts, (tf.size(texts) > 0, f"{name}: must be one at least."))
    again = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    matched = tf.strings.regex_full_match(again, accepted)
    errors = errors_of((again == texts, f"{name}: must be UTF-8."), (matched, f"{name}: {refusal}"))
    return Texts.of(texts, errors, name)


def require(value: Tensor, *conditions: tuple[Tensor, str]) -> Tensor:
    """Return the value, after checks of the whole batch: an InvalidArgumentError if a condition is
    false. Conditions are (booleans, message)."""
    return required({"value": value}, conditions)["value"]


def characters(texts: Any, added_tokens: Sequence[Any] = ()) -> Characters:
    """Split (B,) texts, which `checked` has accepted, into `Characters`.

    Added tokens, as in a `tokenizer.json`, are `MOST_ADDED_TOKENS` at most. One found in a text
    becomes the code point of its index. It starts at the spaces that it absorbs on its left, like
    RoBERTa's <mask>. A text with one that absorbs spaces on its right is refused.
    """
    errors = errors_of(
        (~_holds(texts, NONCHARACTERS), "text: must hold no noncharacter, U+FDD0 to U+FDEF."),
        *(
            (
                ~_holds(texts, re.escape(token["content"])),
                f"text: must not hold {token['content']}, which is taken by token ids alone.",
            )
            for token in added_tokens
            if token["rstrip"]
        ),
    )
    texts = tf.where(errors == "", texts, "")
    ragged = tf.strings.unicode_decode(_added(texts, added_tokens), "UTF-8", errors="strict")
    code_points, rows = ragged.values, ragged.value_rowids()
    widths = tf.ones_like(code_points)
    index = added_place(code_points)
    if added_tokens:
        lengths = tf.gather([len(token["content"]) for token in added_tokens], tf.maximum(index, 0))
        widths = tf.where(index >= 0, lengths, widths)
    ends = tf.cumsum(widths)
    before = tf.concat([[0], ends], axis=0)
    ends -= tf.gather(before, tf.gather(ragged.row_splits, rows))
    source = Characters(code_points, rows, ends - widths, ends, errors)
    if not any(token["lstrip"] for token in added_tokens):
        return source
    takes = tf.gather([token["lstrip"] for token in added_tokens], tf.maximum(index, 0))
    spaces = find(WHITE_SPACE, code_points)[0]
    return _without_spaces_before(source, spaces, takes & (index >= 0))


def _added(texts, added_tokens):
    """Return texts with one code point for each added token; the longest token wins.

    In the library's order: from the left, tokens that are not normalized first.
    """
    for normalized in (False, True):
        marks = {
            token["content"]: chr(FIRST_NONCHARACTER + index)
            for index, token in enumerate(added_tokens)
            if token["normalized"] == normalized
        }
        longest_first = sorted(marks, key=len, reverse=True)
        if marks:
            one_of_them = "|".join(map(re.escape, longest_first))
            texts = tf.strings.regex_replace(texts, f"({one_of_them})", rf"{MARK}\1")
        for token in longest_first:
            texts = tf.strings.regex_replace(texts, MARK + re.escape(token), marks[token])
    return texts


def _holds(texts, pattern):
    return tf.strings.regex_full_match(texts, f"(?s).*{pattern}.*")


def _without_spaces_before(source, spaces, takes):
    """Return the characters without the (N,) spaces that a following added token absorbs.

    (N,) `takes` says which are such tokens; these start where their spaces start.
    """
    size = tf.size(source.rows)
    solid = tf.boolean_mask(tf.range(size), ~spaces)
    behind = tf.cumsum(tf.cast(~spaces, tf.int32), exclusive=True)  # (N,) of `solid`
    following = tf.gather(tf.concat([solid, [size - 1]], axis=0), behind)
    taken = spaces & tf.gather(takes & ~spaces, following)
    taken &= tf.gather(source.rows, following) == source.rows
    counts = tf.math.unsorted_segment_sum(tf.cast(taken, tf.int32), following, size)
    starts = tf.gather(source.starts, tf.range(size) - counts)
    columns = (
        tf.boolean_mask(values, ~taken)
        for values in (source.code_points, source.rows, starts, source.ends)
    )
    return Characters(*columns, source.errors)


def added_place(code_points: Tensor) -> Tensor:
    """Return the index of each code point's added token, or -1."""
    index = code_points - FIRST_NONCHARACTER
    return tf.where((index >= 0) & (index < MOST_ADDED_TOKENS), index, -1)


def shifted(values: Tensor, by: int, fill: Any) -> Tensor:
    """Return values shifted left by `by` positions (right if negative), filled with `fill`."""
    empty = tf.fill([tf.minimum(abs(by), tf.size(values))], tf.cast(fill, values.dtype))
    return tf.concat([values[by:], empty] if by > 0 else [empty, values[:by]], axis=0)


def copies(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Repeat the indices of counts: the repeated index, and the index of the copy in its group."""
    owner = tf.repeat(tf.range(tf.size(counts)), counts)
    return owner, tf.range(tf.size(owner)) - tf.gather(tf.cumsum(counts, exclusive=True), owner)


def in_code_points(texts: Any, *places: Tensor) -> list[Tensor]:
    """Convert ragged byte offsets in (B,) texts to int32 offsets in code points."""
    _, begins = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    size = tf.cast(tf.strings.length(texts), tf.int64)
    before = tf.cumsum(size, exclusive=True)  # bytes of all previous texts
    ordered = begins.values + tf.gather(before, begins.value_rowids())
    for ragged in places:
        rows = ragged.value_rowids()
        offsets = tf.cast(ragged.values, tf.int64) + tf.gather(before, rows)
        indices = tf.searchsorted(ordered, offsets, out_type=tf.int64)
        indices -= tf.gather(begins.row_splits, rows)
        yield ragged.with_values(tf.cast(indices, tf.int32))


def behind(begins: Tensor, texts: Any) -> Tensor:
    """Return (B,) texts without the longest common prefix with their (B,) beginnings."""
    both = tf.strings.unicode_decode(tf.stack([begins, texts]), "UTF-8").to_tensor(-1)  # (2, B, n)
    same = tf.cast((both[0] == both[1]) & (both[0] >= 0), tf.int32)
    common = tf.reduce_sum(tf.math.cumprod(same, axis=1), axis=1)
    return tf.strings.substr(texts, common, tf.strings.length(texts), unit="UTF8_CHAR")
