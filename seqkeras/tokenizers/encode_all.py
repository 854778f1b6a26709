"""The ids of many texts: by the library's own loop, or word by word, where that is the same."""

import itertools
import json
import re
from collections.abc import Sequence

from seqkeras.serving.text import SentencePieces, Subwords, Tokenizer
from seqkeras.serving.text.subwords import require_text

MOST_PARTS = 2**18  # whose ids an `Encoder` remembers
LONGEST_PART = 32  # characters; texts without spaces are longer, and hardly come twice
OF_BERT, OF_BYTES = ["BertNormalizer", "BertPreTokenizer"], [None, "ByteLevel"]  # `_rules`
AFTER_WORD = re.compile(r"(?<=\S)(?=[ \n])")  # where byte pairs have no token across


def encode_all(
    tokenizer: Tokenizer, texts: Sequence[str], special_tokens: bool = False
) -> list[list[int]]:
    """Return the ids of many texts, as `encode` or `analyze` gives them.

    Args:
        tokenizer: one of `seqkeras.tokenizers`.
        texts: a list of strings.
        special_tokens: whether special tokens stand around each text, as `analyze` sets them.

    Returns:
        A list of ids for each text.

    Raises:
        ValueError: if the tokenizer can not read a text.

    Example:
        >>> from seqkeras.tokenizers import CharacterTable, encode_all
        >>> encode_all(CharacterTable.learn(["abc"]), ["abc", "cab!"])
        [[4, 5, 6], [6, 4, 5, 1]]
    """
    if isinstance(tokenizer, Subwords | SentencePieces):
        return tokenizer.encode_all(texts, special_tokens)
    if special_tokens:
        return [tokenizer.analyze(text).token_ids for text in texts]
    return [*map(tokenizer.encode, texts)]


class Encoder:
    """`encode_all` for list after list of texts. A tokenizer of words reads what stands between two
    spaces once, byte pairs a word with what white space stands before it.

    Args:
        tokenizer, special_tokens: see `encode_all`.

    Call arguments:
        texts: see `encode_all`.

    Returns:
        What `encode_all` returns.

    Raises:
        ValueError: if the tokenizer can not read a text.

    Example:
        >>> from seqkeras.tokenizers import learn_word_piece
        >>> from seqkeras.tokenizers.encode_all import Encoder
        >>> encode = Encoder(learn_word_piece(["to be or not to be"], 30), special_tokens=True)
        >>> encode(["to be", "be"]) == [[2, 21, 18, 3], [2, 18, 3]]
        True
    """

    def __init__(self, tokenizer: Tokenizer, special_tokens: bool = False):
        self._tokenizer, self._special_tokens = tokenizer, special_tokens
        self._ids_of: dict[str, list[int]] = {}
        self._parts_of = _parts_of(tokenizer)
        self._around = special_ids_around(tokenizer) if special_tokens else ([], [])

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        if self._parts_of is None:
            return encode_all(self._tokenizer, texts, self._special_tokens)
        for text in texts:
            require_text("Subwords", text)
        rows = [*map(self._parts_of, texts)]
        parts = {*itertools.chain.from_iterable(rows)}
        new = [*parts - self._ids_of.keys()]
        if len(self._ids_of) + len(new) > MOST_PARTS:
            self._ids_of.clear()
            new = [*parts]
        self._ids_of.update(zip(new, encode_all(self._tokenizer, new), strict=True))
        (before, after), ids_of = self._around, self._ids_of.__getitem__
        ids = [[*before, *itertools.chain.from_iterable(map(ids_of, row)), *after] for row in rows]
        for part in new:
            if len(part) > LONGEST_PART:
                del self._ids_of[part]
        return ids


def splits_at_spaces(tokenizer: Tokenizer) -> bool:
    """Return whether a text has the tokens that its words have alone: it has with BERT's rules."""
    return _rules(tokenizer) == OF_BERT and tokenizer.is_word_piece


def _parts_of(tokenizer):
    """Return a function: text -> its parts, which have the tokens of the text; None if there is
    none."""
    rules = _rules(tokenizer)
    if rules == OF_BERT and tokenizer.is_word_piece:
        return lambda text: text.split(" ")
    return AFTER_WORD.split if rules == OF_BYTES else None


def _rules(tokenizer):
    """Return the types of the normalizer and the pre-tokenizer of `Subwords`, where no added token
    holds a space; None of other ones."""
    if not isinstance(tokenizer, Subwords) or re.search(r"\s", "".join(tokenizer.added_tokens)):
        return None
    content = json.loads(tokenizer.to_json())
    rules = [content[part] or {} for part in ("normalizer", "pre_tokenizer")]
    return [rule.get("type") for rule in rules] if rules[1].get("use_regex", True) else None


def special_ids_around(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens that `analyze` sets before a text, and behind it."""
    encoding = tokenizer.analyze("a")  # any word
    is_special = [offset is None for offset in encoding.offsets]
    start, end = is_special.index(False), len(is_special) - is_special[::-1].index(False)
    return encoding.token_ids[:start], encoding.token_ids[end:]
