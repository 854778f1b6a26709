"""Characters as a reader sees them, and scripts that write no spaces between words."""

import re
import unicodedata

# Characters and sets of them, for regular expressions of Python and of TensorFlow.
JOINER = "\u200d"  # joins two signs to one
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
# Chinese characters, the ranges of BERT's code (tokenization.py, _is_chinese_char).
_CHINESE = (
    "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f"
)
CHINESE = re.compile(f"[{_CHINESE}]")
# Scripts without spaces between words: also kana, Thai, Lao, Burmese and Khmer.
WITHOUT_SPACES = re.compile(
    f"[{_CHINESE}\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f\u0e01-\u0e7f\u0e81-\u0edf"
    "\u1000-\u109f\u1780-\u17dd]"
)
_GOES_ON = re.compile(
    f"(?s:.)[{EXTENDERS}]|[{LEADING}][{LEADING}{VOWELS}{SYLLABLES}]"
    f"|[{VOWELS}{OPEN_SYLLABLES}][{VOWELS}{TRAILING}]|[{TRAILING}{SYLLABLES}][{TRAILING}]"
)


def whole_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """Return (start, end) of a span of a text, widened to whole user-perceived characters.

    Marks, variation selectors, skin tones and tags belong to the character before them; so do
    zero-width joiners, the sign after one, and the parts of a Hangul syllable. A flag is two
    letters, paired from the first of a run. A tokenizer may drop these or cut before them. Does not
    handle signs that belong to the character after them, conjunct consonants of Indic scripts, and
    "\\r\\n"; a mark after white space is a separate character.

    Args:
        text: a string.
        start, end: the span, in code points.

    Returns:
        The start and the end of the widened span.

    Reference: https://www.unicode.org/reports/tr29/ (rules GB6 to GB9a and GB11 to GB13)

    Example:
        >>> from seqkeras.serving.text import whole_characters
        >>> text = "e\\u0301a"  # e, its accent, a
        >>> whole_characters(text, 0, 1)
        (0, 2)
    """
    while 0 < start < end and continues(text, start):
        start -= 1
    while 0 < end < len(text) and continues(text, end):
        end += 1
    return start, end


def continues(text: str, index: int, begin: int = 0) -> bool:
    """Return whether the character at an index belongs to the one before; one begins at `begin`."""
    character, before = text[index], text[index - 1]
    if character.isascii() or before.isspace():
        return False
    if _is_flag_letter(character):
        first = index
        while first > begin and _is_flag_letter(text[first - 1]):
            first -= 1
        return (index - first) % 2 == 1
    category = unicodedata.category(character)[0]
    if category == "M" or (category == "S" and before == JOINER):
        return True
    return _GOES_ON.match(text, index - 1) is not None


def may_end_word(text: str, index: int) -> bool:
    """Return whether a word may end before the character at an index of a text, without a space
    there.

    It may where that character, or the one before it, is of a script without spaces.
    """
    around = text[max(0, index - 1) : index + 1]
    return WITHOUT_SPACES.search(around) is not None and not continues(text, index)


def _is_flag_letter(character):
    return FLAG_LETTERS[0] <= character <= FLAG_LETTERS[-1]
