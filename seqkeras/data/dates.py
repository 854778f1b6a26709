"""Dates as people write them in 28 locales, and the ISO dates that they mean.

    de|Samstag, 3. Mai 2014  ->  2014-05-03

The pairs are made on the spot from the CLDR patterns in Babel. The prefix names the locale, and so
the order of day, month and year: `en_US|3/5/2014` is in March, `en_GB|03/05/2014` in May.

Clean text is what `babel.dates.format_date` writes in CLDR's `full`, `long`, `medium` and `short`
forms, in Unicode NFC. A short form gets a four-digit year where CLDR has two digits. All numeric
patterns of one locale keep one order of the fields, so no two of its dates then share a text.

Noisy text has at least one of the changes in `NOISE`:

    case            all lower, all upper, or names with a capital, where the script has case
    punctuation     commas, stops and other marks are lost, separators and spaces differ
    short_month     the abbreviated month name for the full one
    two_digit_year  50-99 mean 19xx and 00-49 mean 20xx
    slip            one letter of a name is dropped, doubled, swapped with the next, or another

Noise never makes a second date possible:

  * A year loses its century only where it can be no other field: where the pattern puts it last, or
    marks it (年, 년), or where CLDR's own short form of the locale has two digits; and only while
    more than spaces separate it from the next number. Never in Japanese, which counts era years.
  * A slipped name is kept only if it is nearer (optimal string alignment) to its own month or
    weekday than to every other one, in whatever form the locale has for them. Words of fewer than
    four letters do not slip (in Chinese, Japanese and Korean three: characters drop or double).
  * Numbers are never joined.

Left out: accents that people drop, other numerals (Arabic, Hindi), other calendars, words between
the fields that people leave out (`de`, `den`), abbreviated weekdays.
"""

import datetime
import hashlib
import pickle
import random
import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from babel import Locale
from babel.core import get_global
from babel.dates import get_date_format, tokenize_pattern
from babel.localedata import resolve_locale_filename
from rapidfuzz.distance import OSA

LOCALES = (
    "en_US", "en_GB", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "cs", "ru", "uk", "tr",
    "el", "zh", "ja", "ko", "fi", "hu", "id", "vi", "ar", "he", "hi", "ro", "da", "nb",
)  # fmt: skip
FORMS = ("full", "long", "medium", "short")
SPLITS = ("train", "validation", "test")
FIRST_DAY, LAST_DAY = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)
NOISE = {  # how often each change is tried in a noisy example
    "case": 0.35,
    "punctuation": 0.4,
    "short_month": 0.35,
    "two_digit_year": 0.25,
    "slip": 0.35,
}
NAMES = ("MMMM", "MMM", "EEEE", "cccc")  # CLDR's symbols of the fields that are words
SEPARATORS = (".", "/", "-", " ")
TRIES = 8  # at a slip that can be decided
WITHOUT_ALPHABET = ("zh", "ja", "ko")
FINAL_FORMS = "ךםןףץς"
VIRAMA = 9  # the combining class of the sign that joins a consonant to the next
NUMBERS_APART_BY_SPACES = re.compile(r"\d +\d")
LOSSES = tuple(  # what people leave out or type differently between and inside words
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


class Example(NamedTuple):
    """A pair, and how it was made.

    Args:
        text: the locale, `|`, and the date as written.
        target: the ISO date.
        locale: one of `LOCALES`.
        form: one of `FORMS`.
        noise: the changes that were made, keys of `NOISE`; empty if the text is clean.
    """

    text: str
    target: str
    locale: str
    form: str
    noise: tuple[str, ...] = ()


def split_of(day):
    """Returns the split that a day belongs to: 8 days in 10 train, 1 validation, 1 test.

    Fixed once and for all by a hash of the ISO date, whatever the seed of a sample.
    """
    digest = hashlib.sha256(day.isoformat().encode()).digest()
    return (*("train",) * 8, "validation", "test")[int.from_bytes(digest[:8], "big") % 10]


@cache
def days(split):
    """Returns all days of a split from `FIRST_DAY` to `LAST_DAY`, in order."""
    if split not in SPLITS:
        raise ValueError(f"days: split must be one of {', '.join(SPLITS)}; received {split!r}.")
    count = (LAST_DAY - FIRST_DAY).days + 1
    every = (FIRST_DAY + datetime.timedelta(number) for number in range(count))
    return tuple(day for day in every if split_of(day) == split)


def sample(split, count, seed, noisy=False, locales=LOCALES):
    """Draws examples, as many of each locale as of any other (but for a rest), in random order.

    Args:
        split: "train", "validation" or "test": whose days.
        count: how many examples.
        seed: an integer. The same arguments give the same examples on every machine.
        noisy: the share of noisy examples, 0 to 1; False is 0 and True is 1.
        locales: some of `LOCALES`.

    Returns:
        A list of `Example`.

    Raises:
        ValueError: for an unknown split or locale, or a share that is none.
    """
    unknown = [locale for locale in locales if locale not in LOCALES]
    if unknown or not locales:
        raise ValueError(
            f"sample: locales must be some of {', '.join(LOCALES)}; "
            f"received {', '.join(map(str, unknown)) or 'none'}."
        )
    if not 0 <= noisy <= 1:
        raise ValueError(f"sample: noisy must be a share from 0 to 1; received {noisy!r}.")
    pool = days(split)
    rng = random.Random(f"{split} {count} {seed} {float(noisy)} {' '.join(locales)}")
    examples = []
    for number in range(count):
        day, locale = _pick(rng, pool), locales[number % len(locales)]
        if rng.random() < noisy:
            examples.append(_noisy_example(rng, day, locale))
        else:
            examples.append(clean_example(day, locale, _pick(rng, FORMS)))
    return sorted(examples, key=lambda example: rng.random())


def clean_example(day, locale, form):
    """Returns the `Example` of a day as Babel writes it in one of `FORMS`."""
    text = _join(_write(day, locale, _pattern(locale, form)))
    return Example(f"{locale}|{text}", day.isoformat(), locale, form)


@cache
def characters():
    """Returns the sorted string of all characters that an example can hold, in any locale."""
    found = set("0123456789-")
    for locale in LOCALES:
        literals = [literal for form in FORMS for _, literal in _pattern(locale, form)]
        names = [name for names in _all_names(locale) for name in names]
        typed = [*SEPARATORS, *(replacement for _, replacement in LOSSES)]
        letters = "".join([locale, "|", *literals, *names, *typed, _alphabet(locale)])
        found.update(letters, _lower(locale, letters), _upper(locale, letters))
    return "".join(sorted(found))


@cache
def max_length():
    """Returns the length of the longest text that an example can have."""
    return max(_longest(locale, form) for locale in LOCALES for form in FORMS)


def _longest(locale, form):
    longest, slip = f"{locale}|", 0
    for symbol, literal in _pattern(locale, form):
        if symbol in NAMES:
            longest += max(_names(locale, symbol), key=len)
            slip = 1
        else:
            longest += {"y": "2000", "": literal}.get(symbol, "30")
    for mark, replacement in LOSSES:
        longest = max(longest, mark.sub(replacement, longest), key=len)
    return len(longest) + slip


# Draws: `random.random` alone is promised to give the same numbers in every version of Python.


def _pick(rng, options):
    return options[int(rng.random() * len(options))]


# Patterns and names: a pattern is a tuple of (symbol, literal), one of them empty.


@cache
def _pattern(locale, form, month="MMMM", year="y"):
    tokens = tokenize_pattern(get_date_format(form, locale).pattern)
    pattern = []
    for kind, value in tokens:
        symbol = value[0] * value[1] if kind == "field" else ""
        symbol = {"MMMM": month, "y": year, "yy": year}.get(symbol, symbol)
        pattern.append((symbol, "" if symbol else unicodedata.normalize("NFC", value)))
    return tuple(pattern)


@cache
def _names(locale, symbol):
    kind, context, width = {
        "MMMM": ("months", "format", "wide"),
        "MMM": ("months", "format", "abbreviated"),
        "EEEE": ("days", "format", "wide"),
        "EEE": ("days", "format", "abbreviated"),
        "cccc": ("days", "stand-alone", "wide"),
    }[symbol]
    names = getattr(Locale.parse(locale), kind)[context][width]
    return tuple(unicodedata.normalize("NFC", names[number]) for number in sorted(names))


@cache
def _keys(locale):
    """Returns {("months", 4): the keys of all names of May, ...} in every form that CLDR has."""
    keys = {}
    for kind, symbols in (("months", ("MMMM", "MMM")), ("days", ("EEEE", "EEE"))):
        tables = [dict(enumerate(_names(locale, symbol))) for symbol in symbols]
        for table in (*tables, *_stand_alone_names(locale, kind)):
            for number, name in table.items():
                keys.setdefault((kind, number), set()).add(_key(locale, name))
    return keys


def _stand_alone_names(locale, kind):
    """Yields {number from 0: name} tables of the stand-alone names that the locale has of its own.

    Read from Babel's files, since `Locale.months["stand-alone"]` of a locale without such names
    gives those of whichever locale was asked first in the process (Babel 2.18).
    """
    while locale:
        data = pickle.loads(Path(resolve_locale_filename(locale)).read_bytes())
        widths = data.get(kind, {}).get("stand-alone", {})
        first = 1 if kind == "months" else 0
        for width in ("wide", "abbreviated"):
            yield {number - first: name for number, name in widths.get(width, {}).items()}
        locale = get_global("parent_exceptions").get(locale) or locale.rpartition("_")[0]


def _write(day, locale, pattern):
    """Returns the day's pieces, a list of (symbol, text)."""
    return [(symbol, _field(day, locale, symbol) if symbol else text) for symbol, text in pattern]


def _field(day, locale, symbol):
    if symbol in ("MMMM", "MMM"):
        return _names(locale, symbol)[day.month - 1]
    if symbol in ("EEEE", "cccc"):
        return _names(locale, symbol)[day.weekday()]
    if symbol == "yy":
        return f"{day.year % 100:02}"
    number = {"y": day.year, "M": day.month, "d": day.day}[symbol[0]]
    return f"{number:0{len(symbol)}}"


def _join(pieces):
    return "".join(text for _, text in pieces)


# Noise.


def _noisy_example(rng, day, locale):
    """Draws forms and changes until at least one change shows."""
    while True:
        form = _pick(rng, FORMS)
        wanted = [name for name, chance in NOISE.items() if rng.random() < chance]
        text, noise = _with_noise(rng, day, locale, form, wanted)
        if noise:
            return Example(f"{locale}|{text}", day.isoformat(), locale, form, noise)


def _with_noise(rng, day, locale, form, wanted):
    """Returns the text, and which of the wanted changes show in it, in the order of `NOISE`."""
    short_month = "short_month" in wanted and _can_shorten_month(locale, form, day.month)
    short_year = "two_digit_year" in wanted and _can_shorten_year(locale, form)
    month, year = "MMM" if short_month else "MMMM", "yy" if short_year else "y"
    pieces = _write(day, locale, _pattern(locale, form, month, year))
    made = {"short_month": short_month, "two_digit_year": short_year}
    if "slip" in wanted:
        slipped = _slip(rng, day, locale, pieces)
        made["slip"], pieces = slipped != pieces, slipped
    if "case" in wanted:
        cased = _recase(rng, locale, pieces)
        made["case"], pieces = cased != pieces, cased
    text = _join(pieces)
    if "punctuation" in wanted:
        plain = _lose_punctuation(rng, pieces)
        if not (short_year and NUMBERS_APART_BY_SPACES.search(plain)):
            made["punctuation"], text = plain != text, plain
    return text, tuple(name for name in NOISE if made.get(name))


@cache
def _can_shorten_month(locale, form, month):
    """Says whether the form holds the month's name, and the abbreviation is another."""
    full, short = (_names(locale, symbol)[month - 1] for symbol in ("MMMM", "MMM"))
    return full != short and "MMMM" in (symbol for symbol, _ in _pattern(locale, form))


@cache
def _can_shorten_year(locale, form):
    """Says whether two digits of a year can be no other field; see the top of this file."""
    if form == "full" or locale == "ja":
        return False
    pattern = _pattern(locale, form)
    symbols = [symbol for symbol, _ in pattern]
    year = symbols.index("y")
    if not any(symbols[year + 1 :]):
        before = next(symbol for symbol in reversed(symbols[:year]) if symbol)
        return before not in NAMES or not _names(locale, before)[0][-1].isdigit()  # tháng 5, 14
    marked = pattern[year + 1][1].startswith(("年", "년"))
    return marked or (_is_numeric(pattern) and "yy" in get_date_format("short", locale).pattern)


def _is_numeric(pattern):
    return not any(symbol in NAMES or literal.strip().isalpha() for symbol, literal in pattern)


def _recase(rng, locale, pieces):
    """Returns the pieces in one of the other cases that they can have, or as they are."""
    title = [(s, _title(locale, text) if s in NAMES else text) for s, text in pieces]
    lower = [(s, _lower(locale, text)) for s, text in pieces]
    upper = [(s, _upper(locale, text)) for s, text in pieces]
    others = [other for other in (lower, lower, upper, title) if other != pieces]
    return _pick(rng, others) if others else pieces


def _lower(locale, text):
    if locale == "tr":
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


def _upper(locale, text):
    """Upper case as typed: Turkish i keeps its dot, Greek its diaeresis but no accent."""
    if locale == "tr":
        text = text.replace("i", "İ")
    if locale == "el":
        text = unicodedata.normalize("NFD", text).replace("\N{COMBINING ACUTE ACCENT}", "")
    return unicodedata.normalize("NFC", text.upper())


def _title(locale, text):
    return " ".join(_upper(locale, word[:1]) + word[1:] for word in text.split(" "))


def _lose_punctuation(rng, pieces):
    """Returns the text with some marks lost or, if it is all numbers, with another separator."""
    text = _join(pieces)
    if _is_numeric(pieces):
        fields = [field for symbol, field in pieces if symbol]
        return _pick(rng, [other for sep in SEPARATORS if (other := sep.join(fields)) != text])
    losses = [(mark, replacement) for mark, replacement in LOSSES if mark.search(text)]
    chosen = [loss for loss in losses if rng.random() < 0.5]
    for mark, replacement in chosen or [_pick(rng, losses)] if losses else ():
        text = mark.sub(replacement, text)
    return text


def _slip(rng, day, locale, pieces):
    """Returns the pieces with one slip in one name, or as they are where no try was decidable."""
    places = [place for place, (symbol, _) in enumerate(pieces) if symbol in NAMES]
    for _ in range(TRIES if places else 0):
        place = _pick(rng, places)
        symbol, name = pieces[place]
        slipped = _slip_in_word(rng, locale, name)
        own = ("months", day.month - 1) if symbol[0] == "M" else ("days", day.weekday())
        if slipped != name and is_nearest(locale, slipped, own):
            return [*pieces[:place], (symbol, slipped), *pieces[place + 1 :]]
    return pieces


def _slip_in_word(rng, locale, word):
    """Returns the word with one letter dropped, doubled, swapped with the next, or another."""
    places = _letters(word)
    if sum(map(str.isalpha, word)) < (3 if locale in WITHOUT_ALPHABET else 4) or not places:
        return word
    place, alphabet = _pick(rng, places), _alphabet(locale)
    before, letter, after = word[:place], word[place], word[place + 1 :]
    slip = _pick(rng, ("drop", "double", "swap", "replace") if alphabet else ("drop", "double"))
    if slip == "double" and _is_plain(_lower(locale, letter)):
        return before + letter + _lower(locale, letter) + after
    if slip == "swap" and place + 1 in places:
        first, second = after[0], _lower(locale, letter)
        first = _upper(locale, first) if letter != second else first
        return before + first + second + after[1:]
    if slip == "replace":
        other = _pick(rng, alphabet)
        return before + (_upper(locale, other) if letter.isupper() else other) + after
    return before + after if slip == "drop" else word


@lru_cache(maxsize=4096)
def _letters(word):
    """Returns the places of the letters that stand alone: no mark on them, no virama before."""
    return tuple(
        place
        for place, letter in enumerate(word)
        if unicodedata.category(letter) in ("Lu", "Ll", "Lo")
        and unicodedata.category(word[place + 1 : place + 2] or " ")[0] != "M"
        and unicodedata.combining(word[place - 1 : place] or " ") != VIRAMA
    )


@cache
def _alphabet(locale):
    """Returns the letters typed by mistake: those of the locale's names, in lower case.

    Without letters that have an accent and final forms, so that no slip is harder to type than the
    name; and none where characters are not typed one by one.
    """
    if locale in WITHOUT_ALPHABET:
        return ""
    letters = _lower(locale, "".join(name for names in _all_names(locale) for name in names))
    return "".join(sorted(letter for letter in set(letters) if _is_plain(letter)))


def _is_plain(letter):
    decomposed = unicodedata.normalize("NFD", letter)
    return unicodedata.category(letter) in ("Ll", "Lo") and decomposed == letter not in FINAL_FORMS


def _all_names(locale):
    """Returns the tables of names that the locale's patterns use."""
    symbols = {s for form in FORMS for m in ("MMMM", "MMM") for s, _ in _pattern(locale, form, m)}
    return [_names(locale, symbol) for symbol in NAMES if symbol in symbols]


@lru_cache(maxsize=65536)
def is_nearest(locale, word, own):
    """Says whether a word is nearer to the names of one month or weekday than to all others.

    Args:
        locale: one of `LOCALES`.
        word: as typed, in any case.
        own: ("months", 0 to 11) or ("days", 0 to 6, from Monday).
    """
    key = _key(locale, word)
    distances = {
        name: min(OSA.distance(key, other) for other in keys)
        for name, keys in _keys(locale).items()
    }
    return all(distances[own] < far for name, far in distances.items() if name != own)


@lru_cache(maxsize=65536)
def _key(locale, name):
    """Returns the name without case, punctuation and spaces, as names are compared."""
    upper = _upper(locale, unicodedata.normalize("NFC", name))
    return "".join(c for c in upper if unicodedata.category(c)[0] in "LMN")
