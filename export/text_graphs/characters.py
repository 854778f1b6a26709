"""A batch of texts as the code points of all, one after the other."""

import dataclasses
import re

import tensorflow as tf

FIRST_NONCHARACTER = 0xFDD0  # of 32 that Unicode keeps for uses such as this one
NONCHARACTERS = r"[\x{FDD0}-\x{FDEF}]"


@dataclasses.dataclass(frozen=True)
class Characters:
    """The code points of B texts; a special token is one, from `FIRST_NONCHARACTER` on.

    Attributes:
        code_points: (N,) int32.
        rows: (N,) int64, of which text each is.
        starts, ends: (N,) int32, where each lies in its text.
        batch_size: B.
    """

    code_points: tf.Tensor
    rows: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    batch_size: tf.Tensor


BLANK = r"\s\v\x1c-\x1f\x{85}\pZ"  # what Python's str.strip() takes away
VISIBLE = rf"[^{BLANK}]"
ANYTHING = rf"(?s).*{VISIBLE}.*"


def checked(texts, name="text", accepted=ANYTHING, refusal="must not be empty or blank."):
    """(B,) texts, of which none is refused; else an InvalidArgumentError that names the input.

    Args:
        texts: (B,) strings.
        name: of the input.
        accepted: the regular expression of what is not refused.
        refusal: what is said of a text that does not match.
    """
    again = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    checks = [tf.debugging.Assert(tf.size(texts) > 0, [f"{name}: must be one at least."])]
    checks += [tf.debugging.Assert(tf.reduce_all(again == texts), [f"{name}: must be UTF-8."])]
    matched = tf.strings.regex_full_match(again, accepted)
    checks.append(tf.debugging.Assert(tf.reduce_all(matched), [f"{name}: {refusal}"]))
    with tf.control_dependencies(checks):
        return tf.identity(texts)


def characters(texts, special_tokens=()):
    """Split (B,) texts.

    Args:
        texts: (B,) strings, as `checked` lets them through.
        special_tokens: strings that are one code point each, at most 32.

    Returns:
        `Characters`; an InvalidArgumentError where a text holds what stands for special tokens.
    """
    used = tf.strings.regex_full_match(texts, f"(?s).*{NONCHARACTERS}.*")
    message = "text: must hold no noncharacter, U+FDD0 to U+FDEF."
    with tf.control_dependencies([tf.debugging.Assert(~tf.reduce_any(used), [message])]):
        texts = tf.identity(texts)
    for place, token in enumerate(special_tokens):
        texts = tf.strings.regex_replace(texts, re.escape(token), chr(FIRST_NONCHARACTER + place))
    ragged = tf.strings.unicode_decode(texts, "UTF-8", errors="strict")
    code_points, rows = ragged.values, ragged.value_rowids()
    widths = tf.ones_like(code_points)
    if special_tokens:
        place = special_place(code_points)
        own = tf.gather([len(token) for token in special_tokens], tf.maximum(place, 0))
        widths = tf.where(place >= 0, own, widths)
    ends = tf.cumsum(widths)
    before = tf.concat([[0], ends], axis=0)
    ends -= tf.gather(before, tf.gather(ragged.row_splits, rows))
    return Characters(code_points, rows, ends - widths, ends, ragged.nrows())


def without_spaces_before(source, spaces, takes):
    """The characters without those spaces that a special token right behind them takes.

    Args:
        source: `Characters`.
        spaces: (N,) which of them are spaces.
        takes: (N,) which are special tokens that take the spaces before them.

    Returns:
        `Characters`; such a token starts where its spaces did.
    """
    size = tf.size(source.rows)
    solid = tf.boolean_mask(tf.range(size), ~spaces)
    behind = tf.cumsum(tf.cast(~spaces, tf.int32), exclusive=True)  # (N,) which solid one follows
    following = tf.gather(tf.concat([solid, [size - 1]], axis=0), behind)
    taken = spaces & tf.gather(takes & ~spaces, following)
    taken &= tf.gather(source.rows, following) == source.rows
    counts = tf.math.unsorted_segment_sum(tf.cast(taken, tf.int32), following, size)
    starts = tf.gather(source.starts, tf.range(size) - counts)
    kept = (
        tf.boolean_mask(each, ~taken)
        for each in (source.code_points, source.rows, starts, source.ends)
    )
    return Characters(*kept, source.batch_size)


def special_place(code_points):
    """Which special token each code point is, or -1."""
    place = code_points - FIRST_NONCHARACTER
    return tf.where((place >= 0) & (place < 32), place, -1)


def shifted(values, by, fill):
    """The value `by` places on (or back, below zero), and `fill` where there is none."""
    empty = tf.fill([tf.minimum(abs(by), tf.size(values))], tf.cast(fill, values.dtype))
    return tf.concat([values[by:], empty] if by > 0 else [empty, values[:by]], axis=0)


def every(counts):
    """Which thing each of so many copies is of, and the how-manieth copy it is."""
    owner = tf.repeat(tf.range(tf.size(counts)), counts)
    return owner, tf.range(tf.size(owner)) - tf.gather(tf.cumsum(counts, exclusive=True), owner)


def behind(begins, texts):
    """(B,) texts without what they have of their (B,) beginnings, character by character."""
    both = tf.strings.unicode_decode(tf.stack([begins, texts]), "UTF-8").to_tensor(-1)  # (2, B, n)
    same = tf.cast((both[0] == both[1]) & (both[0] >= 0), tf.int32)
    common = tf.reduce_sum(tf.math.cumprod(same, axis=1), axis=1)
    return tf.strings.substr(texts, common, tf.strings.length(texts), unit="UTF8_CHAR")
