"""Words, where they lie in a text, and a table of them.

One way of splitting for all that reads words: runs of letters and digits; any other visible
character is a word of its own. It leaves out the rules of a language ("don't" is don, ' and t), and
the words of scripts that set no space between them: a run of such letters is one word. What a
reader sees as one character is never cut, so far as `whole_characters` says.
"""

import collections
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Self

from .encoding import Encoding, fit, require_text
from .vocabularies import PAD, SPECIAL_TOKENS, UNK, Table

# Characters and sets of them, as regular expressions write them: Python's, and TensorFlow's.
JOINER = "\u200d"  # makes one sign of two
EXTENDERS = (
    "\u200c\u200d\uff9e\uff9f"  # the joiners of zero width, the voiced marks of halfwidth kana
    "\u0e33\u0eb3"  # the vowel "am" of Thai and of Lao
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # skin tones, and the tags of regions' flags
)
FLAG_LETTERS = "\U0001f1e6-\U0001f1ff"
LEADING = "\u1100-\u115f\ua960-\ua97c"  # consonants of Hangul that begin a syllable
VOWELS = "\u1160-\u11a7\ud7b0-\ud7c6"
TRAILING = "\u11a8-\u11ff\ud7cb-\ud7fb"
SYLLABLES = "\uac00-\ud7a3"
OPEN_SYLLABLES = "".join(map(chr, range(0xAC00, 0xD7A4, 28)))  # which end in a vowel
_GOES_ON = re.compile(
    f"(?s:.)[{EXTENDERS}]|[{LEADING}][{LEADING}{VOWELS}{SYLLABLES}]"
    f"|[{VOWELS}{OPEN_SYLLABLES}][{VOWELS}{TRAILING}]|[{TRAILING}{SYLLABLES}][{TRAILING}]"
)


def word_places(text: str) -> list[tuple[int, int]]:
    """Return where each word of a text lies, as (start, end) in its order.

    Raises:
        ValueError: if `text` is not a string, or holds a lone surrogate.
    """
    require_text("words", text)
    places, last = [], "nothing"
    for place, character in enumerate(text):
        kind = _kind(character)
        behind = bool(places) and places[-1][1] == place
        if behind and (
            (last == "letters" and kind in ("letters", "joins"))
            or _goes_on(text, place, places[-1][0])
        ):
            places[-1] = places[-1][0], place + 1
        elif kind in ("letters", "signs"):
            places.append((place, place + 1))
            last = kind
    return places


def whole_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """Return (start, end) of a part of a text, widened to the characters that a reader sees.

    Marks, variation selectors, skin tones and tags belong to the character before them, and so do
    the joiners of zero width, the sign behind one and the parts of a syllable of Hangul. A flag is
    two letters, paired from the first of a run. A tokenizer may leave them out or cut before them.
    It leaves out signs that belong to the character behind them, the conjunct consonants of India's
    scripts, and "\\r\\n"; and a mark behind white space is a character of its own.

    Reference: https://www.unicode.org/reports/tr29/ (rules GB6 to GB9a and GB11 to GB13)
    """
    while 0 < start < end and _goes_on(text, start):
        start -= 1
    while 0 < end < len(text) and _goes_on(text, end):
        end += 1
    return start, end


def _goes_on(text, place, begin=0):
    """Whether the character at a place belongs to the one before; one begins at `begin`."""
    character, before = text[place], text[place - 1]
    if character.isascii() or before.isspace():
        return False
    if _is_flag_letter(character):
        first = place
        while first > begin and _is_flag_letter(text[first - 1]):
            first -= 1
        return (place - first) % 2 == 1
    category = unicodedata.category(character)[0]
    if category == "M" or (category == "S" and before == JOINER):
        return True
    return _GOES_ON.match(text, place - 1) is not None


def _is_flag_letter(character):
    return FLAG_LETTERS[0] <= character <= FLAG_LETTERS[-1]


def _kind(character):
    category = unicodedata.category(character)
    if category[0] in "LMN" or category == "Pc":
        return "letters"
    if category == "Cf":  # joins letters, or says how they are written, without being seen
        return "joins"
    return "nothing" if category[0] == "Z" or category == "Cc" else "signs"


class WordTable(Table):
    """The words of a model; a word's id is its place.

        id("<pad>"), id("<unk>") = 0, 1

    Words are looked up in NFC. Any that is not in the table is <unk>.

    Args:
        words: the special tokens, then distinct words.
        lowercase: whether words are looked up in lower case.

    Raises:
        ValueError: if the special tokens are not the first two, or an entry behind them is empty,
            is no string that UTF-8 can hold, or comes twice.
    """

    kind, entry, must_be = "words", "word", "a string that UTF-8 can hold, and not be empty"
    special_tokens = SPECIAL_TOKENS[: UNK + 1]

    def __init__(self, words: Iterable[str], lowercase: bool = False):
        super().__init__(words)
        self.lowercase = bool(lowercase)

    @property
    def words(self) -> tuple[str, ...]:
        """The special tokens, then the words."""
        return self.entries

    def lookup(self, entry: str) -> int:
        """Return the id of a word, <unk> where it is not in the table."""
        return super().lookup(_normalized(entry, self.lowercase))

    def encode(self, text: str) -> list[int]:
        """Return the id of each word of `text`, as a list.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        return [self.lookup(text[start:end]) for start, end in self.places(text)]

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where each word of a text lies, as `word_places` does."""
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
            places: where the words lie in it, if another one has split it; else it is split here.
            max_length: how many words there may be; None for any number.
            truncate: cut what is too long.

        Raises:
            ValueError: if `text` is no string or holds a lone surrogate, or there are too many
                words and `truncate` is False.
        """
        places = self.places(text) if places is None else places
        [kept] = fit(type(self).__name__, [len(places)], 0, max_length, truncate)
        places = list(places[:kept])
        token_ids = [self.lookup(text[start:end]) for start, end in places]
        return Encoding(
            token_ids=token_ids,
            tokens=[self.token_of(each) for each in token_ids],
            offsets=places,
            segment_ids=[0] * kept,
            word_ids=list(range(kept)),
            texts=(text,),
        )

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the words of `token_ids` with spaces between; padding has none.

        Raises:
            ValueError: if an id is not in the table.
        """
        return " ".join(self.token_of(index) for index in token_ids if index != PAD)

    @classmethod
    def learn(cls, words: Iterable[str], lowercase: bool = False, min_count: int = 1) -> Self:
        """Return the table of words, the most frequent first, and of equals in Unicode's order.

        Args:
            words: an iterable of words, as a text is split into them or as a treebank has them.
            lowercase: whether words are looked up in lower case.
            min_count: how often a word must come to be in the table.
        """
        counts = collections.Counter(_normalized(word, lowercase) for word in words)
        kept = [word for word, count in counts.items() if count >= min_count]
        kept.sort(key=lambda word: (-counts[word], word))
        return cls([*cls.special_tokens, *kept], lowercase)

    def content(self) -> dict[str, Any]:
        return {"lowercase": self.lowercase, **super().content()}

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        return cls(content[cls.kind], content.get("lowercase", False))

    @staticmethod
    def is_entry(entry: str) -> bool:
        return bool(entry) and not any("\ud800" <= each <= "\udfff" for each in entry)


def _normalized(word, lowercase):
    word = unicodedata.normalize("NFC", word)
    return word.lower() if lowercase else word
