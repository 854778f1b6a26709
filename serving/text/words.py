"""Words, where they lie in a text, and a table of them.

One way of splitting for all that reads words: runs of letters and digits; any other visible
character is a word of its own. It leaves out the rules of a language ("don't" is don, ' and t), and
the words of scripts that set no space between them: a run of such letters is one word. What a
reader sees as one character is never cut, so far as `whole_characters` says.
"""

import collections
import unicodedata

from .encoding import require_text
from .vocabularies import PAD, SPECIAL_TOKENS, UNK, Table

JOINER = "\u200d"  # makes one sign of two
SKIN_TONES = range(0x1F3FB, 0x1F400)  # of the sign before


def word_places(text):
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
            _goes_on(text, place) or (last == "letters" and kind in ("letters", "joins"))
        ):
            places[-1] = places[-1][0], place + 1
        elif kind in ("letters", "signs"):
            places.append((place, place + 1))
            last = kind
    return places


def whole_characters(text, start, end):
    """Return (start, end) of a part of a text, widened to the characters that a reader sees.

    Marks, variation selectors and skin tones belong to the character before them, and so does a
    zero width joiner with the sign behind it. A tokenizer may leave them out or cut before them.
    It leaves out flags, which are two letters each, and the syllables of Hangul.

    Reference: https://www.unicode.org/reports/tr29/ (rules GB9, GB9a and GB11)
    """
    while 0 < start < end and _goes_on(text, start):
        start -= 1
    while 0 < end < len(text) and _goes_on(text, end):
        end += 1
    return start, end


def _goes_on(text, place):
    """Whether the character at a place belongs to the one before."""
    character, before = text[place], text[place - 1]
    if character.isascii() or before.isspace():
        return False
    category = unicodedata.category(character)
    if category[0] == "M" or character == JOINER or ord(character) in SKIN_TONES:
        return True
    return before == JOINER and category[0] == "S"


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

    def __init__(self, words, lowercase=False):
        super().__init__(words)
        self.lowercase = bool(lowercase)

    @property
    def words(self):
        """The special tokens, then the words."""
        return self.entries

    def lookup(self, entry):
        """Return the id of a word, <unk> where it is not in the table."""
        return super().lookup(_normalized(entry, self.lowercase))

    def encode(self, text):
        """Return the id of each word of `text`, as a list.

        Raises:
            ValueError: if `text` is not a string, or holds a lone surrogate.
        """
        return [self.lookup(text[start:end]) for start, end in word_places(text)]

    def decode(self, token_ids):
        """Return the words of `token_ids` with spaces between; padding has none.

        Raises:
            ValueError: if an id is not in the table.
        """
        return " ".join(self.token_of(index) for index in token_ids if index != PAD)

    @classmethod
    def learn(cls, words, lowercase=False, min_count=1):
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

    def content(self):
        return {"lowercase": self.lowercase, **super().content()}

    @classmethod
    def from_content(cls, content):
        return cls(content[cls.kind], content.get("lowercase", False))

    @staticmethod
    def is_entry(entry):
        return bool(entry) and not any("\ud800" <= each <= "\udfff" for each in entry)


def _normalized(word, lowercase):
    word = unicodedata.normalize("NFC", word)
    return word.lower() if lowercase else word
