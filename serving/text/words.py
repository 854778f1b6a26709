"""Split texts into words, and look words up in a table.

All code splits words in the same way: runs of letters and digits; any other visible character is a
separate word, as is each Chinese character, as in BERT. There are no rules of a language
("don't" is don, ' and t), nor of other scripts without spaces between words: a run of such letters
is one word. A user-perceived character, in the sense of `whole_characters`, is never cut.
"""

import collections
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Self

from .characters import CHINESE, continues
from .encoding import Encoding, fit, require_text
from .vocabularies import PAD, SPECIAL_TOKENS, UNK, Table


def word_places(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each word of a text, in order.

    Args:
        text: a string.

    Returns:
        A list of pairs, so that `text[start:end]` is the word.

    Raises:
        ValueError: if `text` is not a string, or holds a lone surrogate.

    Example:
        >>> from seqkeras.serving.text import word_places
        >>> text = "Don't stop: 東京"
        >>> [text[start:end] for start, end in word_places(text)]
        ['Don', "'", 't', 'stop', ':', '東', '京']
    """
    require_text("words", text)
    places, last = [], "nothing"
    for index, character in enumerate(text):
        kind = _kind(character)
        behind = bool(places) and places[-1][1] == index
        if behind and (
            (last == "letters" and kind in ("letters", "joins"))
            or continues(text, index, places[-1][0])
        ):
            places[-1] = places[-1][0], index + 1
        elif kind in ("letters", "signs", "chinese"):
            places.append((index, index + 1))
            last = kind
    return places


def _kind(character):
    if CHINESE.match(character):
        return "chinese"
    category = unicodedata.category(character)
    if category[0] in "LMN" or category == "Pc":
        return "letters"
    if category == "Cf":  # an invisible character that joins or formats letters
        return "joins"
    return "nothing" if category[0] == "Z" or category == "Cc" else "signs"


class WordTable(Table):
    """The words of a model; a word's id is its index.

        id("<pad>"), id("<unk>") = 0, 1
        id("<bos>"), id("<eos>") = 2, 3    in a table whose words are generated

    Words are looked up in NFC. Any word that is not in the table is <unk>, and so is a word that
    is written like a special token.

    Args:
        words: the special tokens, then distinct words.
        lowercase: whether words are looked up in lower case.
        special_tokens: the first two of "<pad>", "<unk>", "<bos>" and "<eos>", or all of them.

    Raises:
        ValueError: if the special tokens are others or not the first, or an entry after them is
            empty, is no string that UTF-8 can hold, or comes twice.

    Example:
        >>> from seqkeras.serving.text import WordTable
        >>> table = WordTable(["<pad>", "<unk>", "don", "'", "t", "stop"], lowercase=True)
        >>> table.encode("Don't panic")
        [2, 3, 4, 1]
        >>> table.analyze("Don't").offsets
        [(0, 3), (3, 4), (4, 5)]
    """

    kind, entry, must_be = "words", "word", "a string that UTF-8 can hold, and not be empty"
    special_tokens = SPECIAL_TOKENS[: UNK + 1]

    def __init__(
        self,
        words: Iterable[str],
        lowercase: bool = False,
        special_tokens: Sequence[str] = SPECIAL_TOKENS[: UNK + 1],
    ):
        self.special_tokens = tuple(special_tokens)
        if self.special_tokens not in (SPECIAL_TOKENS[: UNK + 1], SPECIAL_TOKENS):
            raise ValueError(
                f"{self._name}: special_tokens must be {', '.join(SPECIAL_TOKENS)}, or the first "
                f"two; received {', '.join(map(str, self.special_tokens))}."
            )
        super().__init__(words)
        self.lowercase = bool(lowercase)

    @property
    def words(self) -> tuple[str, ...]:
        """The special tokens, then the words."""
        return self.entries

    def lookup(self, entry: str) -> int:
        """Return the id of a word, <unk> if it is not in the table."""
        return super().lookup(_normalized(entry, self.lowercase))

    def encode(self, text: str) -> list[int]:
        """Return the id of each word of `text`, as a list.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        return [self.lookup(text[start:end]) for start, end in self.places(text)]

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return (start, end) of each word of a text; see `word_places`."""
        return word_places(text)

    def analyze(
        self,
        text: str,
        places: list[tuple[int, int]] | None = None,
        max_length: int | None = None,
        truncate: bool = False,
    ) -> Encoding:
        """Return the `Encoding` of a text, a token for each word.

        Args:
            text: a string.
            places: (start, end) of its words; None: split it here.
            max_length: the most words; None for any number.
            truncate: cut a text that is too long.

        Raises:
            ValueError: if `text` is not a string, holds a lone surrogate, or has too many words and
                `truncate` is False.
        """
        places = self.places(text) if places is None else places
        [num_words] = fit(type(self).__name__, [len(places)], 0, max_length, truncate)
        places = list(places[:num_words])
        token_ids = [self.lookup(text[start:end]) for start, end in places]
        return Encoding(
            token_ids=token_ids,
            tokens=[self.token_of(token_id) for token_id in token_ids],
            offsets=places,
            segment_ids=[0] * num_words,
            word_ids=list(range(num_words)),
            texts=(text,),
        )

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the words of `token_ids`, joined by spaces, without padding.

        Raises:
            ValueError: if an id is not in the table.
        """
        return " ".join(self.token_of(index) for index in token_ids if index != PAD)

    @classmethod
    def learn(cls, words: Iterable[str], lowercase: bool = False, min_count: int = 1) -> Self:
        """Return the table of words, the most frequent first, ties in Unicode order.

        Args:
            words: an iterable of words, of texts or of a treebank.
            lowercase: whether words are looked up in lower case.
            min_count: how often a word must occur to be in the table.
        """
        counts = collections.Counter(_normalized(word, lowercase) for word in words)
        frequent = [word for word, count in counts.items() if count >= min_count]
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls([*cls.special_tokens, *frequent], lowercase)

    def content(self) -> dict[str, Any]:
        settings = {"lowercase": self.lowercase, "special_tokens": self.special_tokens}
        return {**settings, **super().content()}

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        special = content.get("special_tokens", cls.special_tokens)
        return cls(content[cls.kind], content.get("lowercase", False), special)

    @staticmethod
    def is_entry(entry: str) -> bool:
        return bool(entry) and not any("\ud800" <= character <= "\udfff" for character in entry)


def _normalized(word, lowercase):
    word = unicodedata.normalize("NFC", word)
    return word.lower() if lowercase else word
