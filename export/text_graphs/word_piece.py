"""WordPiece in a graph, with the tokens of `seqkeras.serving.text.word_piece`.

BERT normalizes each character by itself, except for the order of several marks on one letter, which
does not matter if marks are removed. So a table, computed with the tokenizer, holds the result for
each character.
"""

import functools
import json
from typing import Any

import numpy as np
import tensorflow as tf

from seqkeras.export.text_graphs.characters import (
    MARK,
    added_place,
    characters,
    copies,
    in_code_points,
    shifted,
)
from seqkeras.export.text_graphs.lookup import CODE_POINTS, CodePointTable, word_pieces
from seqkeras.export.text_graphs.requirements import require_word_piece
from seqkeras.export.text_graphs.tokens import TextGraph, Tokens
from seqkeras.serving.text.subwords import CONTRACTIONS, require_library, special_tokens
from seqkeras.tensors import Tensor

LETTER, ALONE, SPACE, NOTHING = range(4)  # the kind of a character; greater numbers are expansions
UNKNOWN = MARK * 2  # a token that no word equals
SEPARATOR = "\ua66e"  # a letter that normalization neither changes nor creates


class WordPiece(TextGraph):
    """The tokenizer of a `Subwords` of WordPiece.

    `content` is its `tokenizer.json`, parsed. A ValueError says that it is not BERT's, or has
    options or tokens that the graph does not support.
    """

    def __init__(self, content: dict[str, Any]):
        require_word_piece(content)
        model, self.added_tokens = content["model"], content["added_tokens"]
        self._longest_word = model["max_input_chars_per_word"]
        unknown = model["vocab"][model["unk_token"]]
        self._kinds, self._expansions = _tables(
            json.dumps(content["normalizer"]), json.dumps(content["pre_tokenizer"])
        )
        prefix = model["continuing_subword_prefix"]
        begins = {token: token_id for token, token_id in model["vocab"].items() if token}
        continuations = {
            MARK + token.removeprefix(prefix): token_id
            for token, token_id in begins.items()
            if token.startswith(prefix) and token != prefix
        }
        self._kernel = word_pieces([*begins, *continuations, UNKNOWN], MARK, UNKNOWN)
        self._ids = np.array([*begins.values(), *continuations.values(), unknown], "int32")
        added_ids = {token["content"]: token["id"] for token in self.added_tokens}
        special = special_tokens(content)
        self.pieces = [""] * (max([*model["vocab"].values(), *added_ids.values()]) + 1)
        for token, token_id in (model["vocab"] | added_ids).items():
            if token not in special:
                continues = token.startswith(prefix)
                self.pieces[token_id] = MARK + token[len(prefix) :] if continues else f" {token}"
        self._prefix = prefix

    def split(self, texts: Any) -> Tokens:
        source = characters(texts, self.added_tokens)
        words, owner = self._words(source)
        sizes = words.row_lengths()
        too_long = sizes > self._longest_word
        spelled = tf.strings.unicode_encode(words, "UTF-8")
        # A word that is too long is one unknown token, as long as the word.
        ids, *places = self._kernel.tokenize_with_offsets(tf.where(too_long, UNKNOWN, spelled))
        word = ids.value_rowids()
        starts, ends = (tf.cast(e.values, tf.int64) for e in in_code_points(spelled, *places))
        ends = tf.where(tf.gather(too_long, word), tf.gather(sizes, word), ends)
        begins = tf.gather(words.row_starts(), word)
        first, last = tf.gather(owner, begins + starts), tf.gather(owner, begins + ends - 1)
        added_index = added_place(tf.gather(words.values, begins))
        added_ids = tf.gather([0, *(token["id"] for token in self.added_tokens)], added_index + 1)
        return Tokens.of_rows(
            tf.where(added_index >= 0, added_ids, tf.gather(self._ids, ids.values)),
            tf.gather(source.starts, first),
            tf.gather(source.ends, last),
            tf.gather(source.rows, first),
            source.errors,
        )

    def tidied(self, joined: Tensor) -> Tensor:
        text = tf.strings.regex_replace(joined, "^ ", "")
        text = tf.strings.regex_replace(text, f"^{MARK}", self._prefix)
        text = tf.strings.regex_replace(text, MARK, "")
        for mark in ".?!,":  # as `seqkeras.serving.text.tidy`
            text = tf.strings.regex_replace(text, f" \\{mark}", mark)
        text = tf.strings.regex_replace(text, " ' ", "'")
        for ending in CONTRACTIONS:
            text = tf.strings.regex_replace(text, f" {ending}", ending)
        return text

    def _words(self, source):
        """Return ragged (W, None) code points of normalized words, and the character of each."""
        kinds = self._kinds(source.code_points)
        kinds = tf.where(added_place(source.code_points) >= 0, ALONE, kinds)
        begins, counts, code_points, classes = self._expansions
        owner, copy = copies(tf.gather(counts, kinds))
        kind = tf.gather(kinds, owner)
        at = tf.gather(begins, kind) + copy
        itself = kind <= NOTHING
        became = tf.where(itself, tf.gather(source.code_points, owner), tf.gather(code_points, at))
        classes = tf.where(itself, kind, tf.gather(classes, at))
        rows = tf.gather(source.rows, owner)
        before = shifted(classes, -1, SPACE)
        starts = (before != LETTER) | (classes != LETTER) | (rows != shifted(rows, -1, -1))
        is_word = classes != SPACE
        became, owner, starts = (
            tf.boolean_mask(values, is_word) for values in (became, owner, starts)
        )
        word = tf.cumsum(tf.cast(starts, tf.int64)) - 1
        count = tf.math.count_nonzero(starts)
        return tf.RaggedTensor.from_value_rowids(became, word, count), owner


@functools.lru_cache(maxsize=4)
def _tables(normalizer, pre_tokenizer):
    """Return a table of kinds, and (begins, counts, code points, classes) of expansions."""
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
    alike, forms = _forms(tokenizer.normalizer, tokenizer.pre_tokenizer)
    classes = _classes(tokenizer.pre_tokenizer, sorted(set().union(*forms.values())))
    kinds, expansions = np.full(CODE_POINTS, NOTHING), {}
    for block in alike:
        kinds[block] = LETTER
    for code_point, form in forms.items():
        bare = form.strip()
        if bare == chr(code_point) and classes[bare] != SPACE:
            alone = bare != form or classes[bare] == ALONE
            kinds[code_point] = ALONE if alone else LETTER
        elif form:
            expanded = tuple((ord(character), classes[character]) for character in form)
            spaces = all(kind == SPACE for _, kind in expanded)
            kinds[code_point] = (
                SPACE if spaces else expansions.setdefault(expanded, NOTHING + 1 + len(expansions))
            )
    counts = [1, 1, 1, 0, *map(len, expansions)]
    begins = np.cumsum([0, *counts[:-1]])
    listed = np.array([(0, 0)] * 3 + [pair for expanded in expansions for pair in expanded])
    return CodePointTable(kinds), (
        begins.astype("int32"),
        np.array(counts, "int32"),
        listed[:, 0].astype("int32"),
        listed[:, 1].astype("int32"),
    )


def _forms(normalizer, pre_tokenizer, block=4096):
    """Return the blocks of code points that stay as they are and make one word together, and a
    dictionary of the others: code point -> its normalized text, where that is not empty."""
    alike, forms = [], {}
    for first in range(0, CODE_POINTS, block):
        code_points = np.arange(first, first + block)
        surrogate = (code_points >= 0xD800) & (code_points < 0xE000)
        code_points = code_points[~surrogate & (code_points != ord(SEPARATOR))]
        joined = SEPARATOR.join(code_points.astype("<u4").tobytes().decode("utf-32-le"))
        normalized = normalizer.normalize_str(joined) if joined else ""
        if normalized == joined and _is_one_word(pre_tokenizer, joined):
            alike.append(code_points)
        elif normalized.strip(SEPARATOR):  # not all of them become nothing
            forms.update(zip(code_points.tolist(), normalized.split(SEPARATOR), strict=True))
    forms[ord(SEPARATOR)] = SEPARATOR
    return alike, forms


def _is_one_word(pre_tokenizer, text):
    return len(pre_tokenizer.pre_tokenize_str(f"a{text}")) == 1


def _classes(pre_tokenizer, distinct, block=4096):
    """Return a dictionary: character -> LETTER, ALONE or SPACE."""
    classes = dict.fromkeys(distinct, SPACE)
    for begin in range(0, len(distinct), block):  # all at once would take 280 MB more
        characters = distinct[begin : begin + block]
        for _, (first, end) in pre_tokenizer.pre_tokenize_str("".join(characters)):
            joined = pre_tokenizer.pre_tokenize_str(f"a{characters[first]}")
            kind = LETTER if end > first + 1 or len(joined) == 1 else ALONE
            classes.update(dict.fromkeys(characters[first:end], kind))
    return classes
