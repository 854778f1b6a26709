"""A batch of texts as the code points of all, one after the other."""

import dataclasses
import re

import tensorflow as tf

from export.text_graphs.lookup import find

BLANK = r"\s\v\x1c-\x1f\x{85}\pZ"  # what Python's str.strip() takes away
VISIBLE = rf"[^{BLANK}]"
ANYTHING = rf"(?s).*{VISIBLE}.*"
FIRST_NONCHARACTER = 0xFDD0  # of 32 that Unicode keeps for uses such as this one
NONCHARACTERS = r"[\x{FDD0}-\x{FDEF}]"
MOST_ADDED_TOKENS = 31
MARK = chr(FIRST_NONCHARACTER + MOST_ADDED_TOKENS)  # stands before an added token
# Unicode's property White_Space: what an added token may take beside it.
WHITE_SPACE = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029]
WHITE_SPACE += [0x202F, 0x205F, 0x3000]


@dataclasses.dataclass(frozen=True)
class Characters:
    """The code points of B texts; an added token is one, from `FIRST_NONCHARACTER` on.

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


def checked(texts, name="text", accepted=ANYTHING, refusal="must not be empty or blank."):
    """(B,) texts, of which none is refused; else an InvalidArgumentError that names the input.

    Args:
        texts: (B,) strings.
        name: of the input.
        accepted: the regular expression of what is not refused.
        refusal: what is said of a text that does not match.
    """
    again = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    matched = tf.strings.regex_full_match(again, accepted)
    return require(
        texts,
        (tf.size(texts) > 0, f"{name}: must be one at least."),
        (again == texts, f"{name}: must be UTF-8."),
        (matched, f"{name}: {refusal}"),
    )


def require(value, *conditions):
    """The value, once everything in each condition is true; else an InvalidArgumentError.

    Args:
        value: a tensor.
        conditions: (booleans, what is said where one of them is false).
    """
    checks = [tf.debugging.Assert(tf.reduce_all(each), [said]) for each, said in conditions]
    with tf.control_dependencies(checks):
        return tf.identity(value)


def characters(texts, added_tokens=()):
    """Split (B,) texts.

    Args:
        texts: (B,) strings, as `checked` lets them through.
        added_tokens: as in a `tokenizer.json`, `MOST_ADDED_TOKENS` at most: each that is found in a
            text is one code point, of its place among them. It lies where the spaces begin that it
            takes before it, as RoBERTa's <mask> does. One that takes those behind it is refused.

    Returns:
        `Characters`; an InvalidArgumentError where a text holds what is refused.
    """
    texts = require(
        texts,
        (~_holds(texts, NONCHARACTERS), "text: must hold no noncharacter, U+FDD0 to U+FDEF."),
        *(
            (
                ~_holds(texts, re.escape(each["content"])),
                f"text: must not hold {each['content']}, which is taken by token ids alone.",
            )
            for each in added_tokens
            if each["rstrip"]
        ),
    )
    ragged = tf.strings.unicode_decode(_added(texts, added_tokens), "UTF-8", errors="strict")
    code_points, rows = ragged.values, ragged.value_rowids()
    widths = tf.ones_like(code_points)
    place = added_place(code_points)
    if added_tokens:
        own = tf.gather([len(each["content"]) for each in added_tokens], tf.maximum(place, 0))
        widths = tf.where(place >= 0, own, widths)
    ends = tf.cumsum(widths)
    before = tf.concat([[0], ends], axis=0)
    ends -= tf.gather(before, tf.gather(ragged.row_splits, rows))
    source = Characters(code_points, rows, ends - widths, ends, ragged.nrows())
    if not any(each["lstrip"] for each in added_tokens):
        return source
    takes = tf.gather([each["lstrip"] for each in added_tokens], tf.maximum(place, 0))
    spaces = find(WHITE_SPACE, code_points)[0]
    return _without_spaces_before(source, spaces, takes & (place >= 0))


def _added(texts, added_tokens):
    """Texts with a code point for each added token: where two begin, for the longer.

    As the library finds them: from the left, those that are not normalized before all others.
    """
    for normalized in (False, True):
        own = {
            each["content"]: chr(FIRST_NONCHARACTER + place)
            for place, each in enumerate(added_tokens)
            if each["normalized"] == normalized
        }
        longest_first = sorted(own, key=len, reverse=True)
        if own:
            one_of_them = "|".join(map(re.escape, longest_first))
            texts = tf.strings.regex_replace(texts, f"({one_of_them})", rf"{MARK}\1")
        for token in longest_first:
            texts = tf.strings.regex_replace(texts, MARK + re.escape(token), own[token])
    return texts


def _holds(texts, pattern):
    return tf.strings.regex_full_match(texts, f"(?s).*{pattern}.*")


def _without_spaces_before(source, spaces, takes):
    """The characters without those spaces that an added token right behind them takes.

    Args:
        source: `Characters`.
        spaces: (N,) which of them are spaces.
        takes: (N,) which are added tokens that take the spaces before them.

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


def added_place(code_points):
    """Which added token each code point is, or -1."""
    place = code_points - FIRST_NONCHARACTER
    return tf.where((place >= 0) & (place < MOST_ADDED_TOKENS), place, -1)


def shifted(values, by, fill):
    """The value `by` places on (or back, below zero), and `fill` where there is none."""
    empty = tf.fill([tf.minimum(abs(by), tf.size(values))], tf.cast(fill, values.dtype))
    return tf.concat([values[by:], empty] if by > 0 else [empty, values[:by]], axis=0)


def every(counts):
    """The thing that each copy is of, and the index of the copy within its group."""
    owner = tf.repeat(tf.range(tf.size(counts)), counts)
    return owner, tf.range(tf.size(owner)) - tf.gather(tf.cumsum(counts, exclusive=True), owner)


def in_code_points(texts, *places):
    """Ragged places in (B,) texts, by bytes, to int32 ones by code points."""
    _, begins = tf.strings.unicode_decode_with_offsets(texts, "UTF-8")
    size = tf.cast(tf.strings.length(texts), tf.int64)
    before = tf.cumsum(size, exclusive=True)  # bytes of the texts before each
    ordered = begins.values + tf.gather(before, begins.value_rowids())
    for each in places:
        rows = each.value_rowids()
        own = tf.cast(each.values, tf.int64) + tf.gather(before, rows)
        found = tf.searchsorted(ordered, own, out_type=tf.int64)
        found -= tf.gather(begins.row_splits, rows)
        yield each.with_values(tf.cast(found, tf.int32))


def behind(begins, texts):
    """(B,) texts without what they have of their (B,) beginnings, character by character."""
    both = tf.strings.unicode_decode(tf.stack([begins, texts]), "UTF-8").to_tensor(-1)  # (2, B, n)
    same = tf.cast((both[0] == both[1]) & (both[0] >= 0), tf.int32)
    common = tf.reduce_sum(tf.math.cumprod(same, axis=1), axis=1)
    return tf.strings.substr(texts, common, tf.strings.length(texts), unit="UTF8_CHAR")
