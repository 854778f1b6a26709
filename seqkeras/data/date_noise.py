"""Human noise in dates: shortened fields, typing errors, changed case and punctuation.

A date comes as pieces, a list of (symbol, text): CLDR's symbol of a field, or "" between fields.

    [("d", "3"), ("", ". "), ("MMMM", "Oktober"), ("", " "), ("y", "2014")]  ->  3 oktber 14

The changes, in the order of their making:

    short_month     the abbreviated month name for the full one
    two_digit_year  50-99 mean 19xx and 00-49 mean 20xx
    slip            one letter of a name is dropped, doubled, swapped with the next, or another
    case            all lower, all upper, or names with a capital, where the script has case
    punctuation     commas, stops and other marks are lost, separators and spaces differ

The changes never make a second reading of the date possible:

  * A year loses its century only where it can be no other field: where it stands last, or is marked
    (年, 년), or where CLDR's own short form of the locale has two digits; and only while more than
    spaces separate it from the next number. Never beside a weekday; never in Japanese, which counts
    era years.
  * A slipped name is kept only if it is nearer (optimal string alignment) to its own month or
    weekday than to every other one, in whatever form the locale has for them. Words of fewer than
    four letters do not slip (in Chinese, Japanese and Korean three: characters drop or double).
  * Numbers are never joined.

Left out: accents that people drop, words between the fields that they leave out (`de`, `den`),
abbreviated weekdays.
"""

import datetime
import pickle
import random
import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from babel import Locale
from babel.core import get_global
from babel.dates import get_date_format
from babel.localedata import resolve_locale_filename
from rapidfuzz.distance import OSA

NOISE = {  # how often each change is tried in a noisy example
    "case": 0.35,
    "punctuation": 0.4,
    "short_month": 0.35,
    "two_digit_year": 0.25,
    "slip": 0.35,
}
NAMES = {  # CLDR's symbols of the fields that are words, and where Babel has the words
    "MMMM": ("months", "format", "wide"),
    "MMM": ("months", "format", "abbreviated"),
    "EEEE": ("days", "format", "wide"),
    "EEE": ("days", "format", "abbreviated"),
    "cccc": ("days", "stand-alone", "wide"),
}
SEPARATORS = (".", "/", "-", " ")
LOSSES = tuple(  # what people omit or type differently between and inside words
    (re.compile(mark, re.IGNORECASE), replacement)
    for mark, replacement in (
        ("[,،]", ""),
        ("[.॰]", ""),
        ("\u202f[гр]\\.", ""),  # "of the year", in Russian and Ukrainian
        ("\u202f", " "),
        ("[׳ʼ]", "'"),
        ("[׳ʼ]", ""),
        ("(?<=[^\\W\\d])-", " "),  # segunda-feira
        ("(?<=[년월]) ", ""),
        ("(?<=\\d日)(?=\\w)", " "),
        ("(?<=[年月])(?=\\d)", " "),
    )
)
NUMBERS_APART_BY_SPACES = re.compile(r"\d +\d")
TRIES = 8  # at a slip that can be decided
WITHOUT_ALPHABET = ("zh", "ja", "ko")
FINAL_FORMS = "ךםןףץς"
VIRAMA = 9  # the combining class of the sign that joins a consonant to the next


def add_noise(
    rng: random.Random,
    day: datetime.date,
    locale: str,
    pieces: Sequence[tuple[str, str]],
    wanted: Collection[str],
) -> tuple[str, tuple[str, ...]]:
    """Make the requested changes that the date allows.

    Args:
        rng: a `random.Random`.
        day: the date that the pieces write.
        locale: the locale that they are written in.
        pieces: a list of (symbol, text), as at the top of this file.
        wanted: keys of `NOISE`.

    Returns:
        The text, and the tuple of the changes that it shows.
    """
    changes = {
        "short_month": partial(_shorten_month, day, locale),
        "two_digit_year": partial(_shorten_year, locale),
        "slip": partial(_slip, rng, day, locale),
        "case": partial(_recase, rng, locale),
        "punctuation": partial(_lose_punctuation, rng),
    }
    made = set()
    for name, change in changes.items():
        changed = change(pieces) if name in wanted else pieces
        if changed != pieces:
            made.add(name)
        pieces = changed
    return _join(pieces), tuple(name for name in wanted if name in made)


def pick(rng: random.Random, options: Sequence[Any]) -> Any:
    """Draw one of the options, by `rng.random` alone.

    No other draw is promised to give the same numbers in every version of Python.
    """
    return options[int(rng.random() * len(options))]


def _join(pieces):
    return "".join(text for _, text in pieces)


# Shorter fields.


def _shorten_month(day, locale, pieces):
    short = name_of(day, locale, "MMM")
    return [(symbol, short if symbol == "MMMM" else text) for symbol, text in pieces]


def _shorten_year(locale, pieces):
    if not _needs_no_century(locale, pieces):
        return pieces
    return [("yy", text[-2:]) if symbol == "y" else (symbol, text) for symbol, text in pieces]


def _needs_no_century(locale, pieces):
    """Return whether two digits of the year can be no other field; see the top of this file."""
    symbols = [symbol for symbol, _ in pieces]
    if locale == "ja" or not {"EEEE", "cccc"}.isdisjoint(symbols):
        return False
    year = symbols.index("y")
    if not any(symbols[year + 1 :]):
        symbol, before = next(piece for piece in reversed(pieces[:year]) if piece[0])
        return symbol not in NAMES or not before[-1].isdigit()  # tháng 5, 14
    marked = pieces[year + 1][1].startswith(("年", "년"))
    return marked or (_is_numeric(pieces) and "yy" in get_date_format("short", locale).pattern)


def _is_numeric(pieces):
    return not any(symbol in NAMES or text.strip().isalpha() for symbol, text in pieces)


# Slips.


def _slip(rng, day, locale, pieces):
    """Return the pieces with one slip in one name, or as they are where no try was decidable."""
    places = [index for index, (symbol, _) in enumerate(pieces) if symbol in NAMES]
    for _ in range(TRIES if places else 0):
        index = pick(rng, places)
        symbol, name = pieces[index]
        slipped = _slip_in_word(rng, locale, name)
        if slipped != name and is_nearest(locale, slipped, _meaning(day, symbol)):
            return [*pieces[:index], (symbol, slipped), *pieces[index + 1 :]]
    return pieces


def _slip_in_word(rng, locale, word):
    """Return the word with one letter dropped, doubled, swapped with the next, or another."""
    places = _letters(word)
    if sum(map(str.isalpha, word)) < (3 if locale in WITHOUT_ALPHABET else 4) or not places:
        return word
    index, alphabet = pick(rng, places), _alphabet(locale)
    before, letter, after = word[:index], word[index], word[index + 1 :]
    small, like_letter = lower_case(locale, letter), upper_case if letter.isupper() else lower_case
    slip = pick(rng, ("drop", "double", "swap", "replace") if alphabet else ("drop", "double"))
    if slip == "drop":
        return before + after
    if slip == "double" and _is_plain(small):
        return before + letter + small + after
    if slip == "swap" and index + 1 in places:
        return before + like_letter(locale, after[0]) + small + after[1:]
    if slip == "replace":
        return before + like_letter(locale, pick(rng, alphabet)) + after
    return word


@lru_cache(maxsize=4096)
def _letters(word):
    """Return the places of the letters that stand alone: no mark on them, no virama before."""
    return tuple(
        index
        for index, letter in enumerate(word)
        if unicodedata.category(letter) in ("Lu", "Ll", "Lo")
        and unicodedata.category(word[index + 1 : index + 2] or " ")[0] != "M"
        and unicodedata.combining(word[index - 1 : index] or " ") != VIRAMA
    )


@cache
def _alphabet(locale):
    """Return the letters typed by mistake: the letters of the locale's names, in lower case.

    Without letters that have an accent and final forms, so that no slip is harder to type than the
    name; and none where characters are not typed one by one.
    """
    if locale in WITHOUT_ALPHABET:
        return ""
    names = [name for symbol in ("MMMM", "MMM", "EEEE") for name in _names(locale, symbol)]
    return "".join(sorted(filter(_is_plain, set(lower_case(locale, "".join(names))))))


def _is_plain(letter):
    decomposed = unicodedata.normalize("NFD", letter)
    return unicodedata.category(letter) in ("Ll", "Lo") and decomposed == letter not in FINAL_FORMS


# Case, as the locale's keyboard types it.


def _recase(rng, locale, pieces):
    """Return the pieces in one of the other cases that they can have, or as they are."""
    title = [(s, _title(locale, text) if s in NAMES else text) for s, text in pieces]
    lower = [(s, lower_case(locale, text)) for s, text in pieces]
    upper = [(s, upper_case(locale, text)) for s, text in pieces]
    others = [other for other in (lower, lower, upper, title) if other != pieces]
    return pick(rng, others) if others else pieces


def lower_case(locale: str, text: str) -> str:
    if locale == "tr":
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


def upper_case(locale: str, text: str) -> str:
    """Return upper case as people type it: Turkish i keeps its dot, Greek its diaeresis but no
    accent."""
    if locale == "tr":
        text = text.replace("i", "İ")
    if locale == "el":
        text = unicodedata.normalize("NFD", text).replace("\N{COMBINING ACUTE ACCENT}", "")
    return unicodedata.normalize("NFC", text.upper())


def _title(locale, text):
    return " ".join(upper_case(locale, word[:1]) + word[1:] for word in text.split(" "))


# Punctuation.


def _lose_punctuation(rng, pieces):
    """Return the text as one piece, with some marks lost or, if all is numbers, another separator.

    Or the pieces as they are, where nothing can be lost.
    """
    text = plain = _join(pieces)
    if _is_numeric(pieces):
        fields = [field for symbol, field in pieces if symbol]
        plain = pick(rng, [other for sep in SEPARATORS if (other := sep.join(fields)) != text])
    elif losses := [(mark, typed) for mark, typed in LOSSES if mark.search(text)]:
        for mark, typed in [loss for loss in losses if rng.random() < 0.5] or [pick(rng, losses)]:
            plain = mark.sub(typed, plain)
    short_year = "yy" in (symbol for symbol, _ in pieces)
    if plain == text or (short_year and NUMBERS_APART_BY_SPACES.search(plain)):
        return pieces
    return [("", plain)]


# The nearest name.


@lru_cache(maxsize=65536)
def is_nearest(locale: str, word: str, expected: tuple[str, int]) -> bool:
    """Return whether a word is nearer to the names of one month or weekday than to all others.

    Args:
        locale: a locale that CLDR has.
        word: as typed, in any case.
        expected: ("months", 0 to 11) or ("days", 0 to 6, from Monday).
    """
    key = _key(locale, word)
    distances = {
        meaning: min(OSA.distance(key, other) for other in keys)
        for meaning, keys in _keys(locale).items()
    }
    return all(
        distances[expected] < far for meaning, far in distances.items() if meaning != expected
    )


@lru_cache(maxsize=65536)
def resembles_a_name(locale: str, word: str) -> bool:
    """Return whether a word could be taken for a month or a weekday: one edit away, or none."""
    key = _key(locale, word)
    most = 1 if len(key) > 3 else 0
    return any(
        OSA.distance(key, other, score_cutoff=most) <= most
        for keys in _keys(locale).values()
        for other in keys
    )


@cache
def _keys(locale):
    """Return {("months", 4): the keys of all names of May, ...} in every form that CLDR has."""
    keys = {}
    for meaning, name in (*_format_names(locale), *_stand_alone_names(locale)):
        keys.setdefault(meaning, set()).add(_key(locale, name))
    return keys


@lru_cache(maxsize=65536)
def _key(locale, name):
    """Return the name without case, punctuation and spaces, as names are compared."""
    upper = upper_case(locale, unicodedata.normalize("NFC", name))
    return "".join(c for c in upper if unicodedata.category(c)[0] in "LMN")


# Names. A meaning is ("months", 0 to 11) or ("days", 0 to 6).


def name_of(day: datetime.date, locale: str, symbol: str) -> str:
    """Return the name of the day's month or weekday that stands for a symbol in `NAMES`."""
    _, number = _meaning(day, symbol)
    return _names(locale, symbol)[number]


def _meaning(day, symbol):
    kind = NAMES[symbol][0]
    return kind, day.month - 1 if kind == "months" else day.weekday()


@cache
def _names(locale, symbol):
    kind, context, width = NAMES[symbol]
    names = getattr(Locale.parse(locale), kind)[context][width]
    return tuple(unicodedata.normalize("NFC", names[number]) for number in sorted(names))


def _format_names(locale):
    """Yield (meaning, name) of the names that stand within a date."""
    for symbol in ("MMMM", "MMM", "EEEE", "EEE"):
        for number, name in enumerate(_names(locale, symbol)):
            yield (NAMES[symbol][0], number), name


def _stand_alone_names(locale):
    """Yield (meaning, name) of the stand-alone names that the locale itself has.

    Read from Babel's files, since `Locale.months["stand-alone"]` of a locale without such names
    gives the names of whichever locale was asked first in the process (Babel 2.18).
    """
    while locale:
        data = pickle.loads(Path(resolve_locale_filename(locale)).read_bytes())
        for kind, first in (("months", 1), ("days", 0)):
            widths = data.get(kind, {}).get("stand-alone", {})
            for width in ("wide", "abbreviated"):
                for number, name in widths.get(width, {}).items():
                    yield (kind, number - first), name
        locale = get_global("parent_exceptions").get(locale) or locale.rpartition("_")[0]


# Bounds. A pattern is a tuple of (symbol, text) whose fields are still empty.


def typed_characters(locale: str, pattern: Sequence[tuple[str, str]]) -> set[str]:
    """Return the set of all characters that people can type for a pattern, but the digits.

    Slips add none: they type letters of the names.
    """
    symbols = {symbol for symbol, _ in pattern if symbol in NAMES}
    if "MMMM" in symbols:
        symbols.add("MMM")
    names = [name for symbol in sorted(symbols) for name in _names(locale, symbol)]
    typed = [*SEPARATORS, *(other for _, other in LOSSES)]
    text = "".join([_join(pattern), *names, *typed])
    return {*text, *lower_case(locale, text), *upper_case(locale, text)}


def typed_length(locale: str, pattern: Sequence[tuple[str, str]]) -> int:
    """Return the length of the longest text that people can type for a pattern."""
    longest, doubled = "", 0
    for symbol, literal in pattern:
        if symbol in NAMES:
            longest += max(_names(locale, symbol), key=len)
            doubled = 1
        else:
            longest += {"y": "2000", "": literal}.get(symbol, "30")
    for mark, typed in LOSSES:
        longest = max(longest, mark.sub(typed, longest), key=len)
    return len(longest) + doubled
