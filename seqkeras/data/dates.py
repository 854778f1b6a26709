"""Dates as people write them in 28 locales, and the ISO dates that they mean.

    de|Samstag, 3. Mai 2014  ->  2014-05-03

The pairs are made on the spot from the CLDR patterns in Babel. The prefix names the locale, and so
the order of day, month and year: `en_US|3/5/2014` is in March, `en_GB|03/05/2014` in May.

Clean text is what `babel.dates.format_date` writes in CLDR's `full`, `long`, `medium` and `short`
forms, in Unicode NFC. A short form gets a four-digit year where CLDR has two digits. All numeric
patterns of one locale keep one order of the fields, so no two of its dates then share a text.

Noisy text has at least one of the changes in `NOISE`. `date_noise.py` makes them, and never makes a
second date possible. `dates_in_text.py` makes text around dates, and text that holds none.

Left out: other calendars.
"""

import datetime
import hashlib
import random
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from babel.dates import get_date_format, tokenize_pattern

from seqkeras.data import dates_in_text
from seqkeras.data.date_noise import (
    NAMES,
    NOISE,
    add_noise,
    name_of,
    pick,
    typed_characters,
    typed_length,
)
from seqkeras.data.dates_in_text import NONE

LOCALES = (
    "en_US", "en_GB", "de", "fr", "es", "it", "pt", "nl", "sv", "pl", "cs", "ru", "uk", "tr",
    "el", "zh", "ja", "ko", "fi", "hu", "id", "vi", "ar", "he", "hi", "ro", "da", "nb",
)  # fmt: skip
FORMS = ("full", "long", "medium", "short")
SPLITS = ("train", "validation", "test")
LEAP_DAYS = 0.04  # of the training's dates in text: that day is else far more often none than real
FIRST_DAY, LAST_DAY = datetime.date(1950, 1, 1), datetime.date(2049, 12, 31)

YEAR = "(19[5-9][0-9]|20[0-4][0-9])"
LEAP_YEAR = "(19(5[26]|[68][048]|[79][26])|20([024][048]|[13][26]))"
ANSWERS = (  # a regular expression of all that an answer may be: a day of these years, or none
    f"{NONE}|{YEAR}-("
    "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
    "|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{LEAP_YEAR}-02-29"
)


class Example(NamedTuple):
    """A pair, and how it was made.

    Args:
        text: the locale, `|`, and the date as written.
        target: the ISO date, or "none".
        locale: one of `LOCALES`.
        form: one of `FORMS`, or "text".
        noise: the changes that were made, keys of `NOISE`; of text what was written and what stands
            around it (`dates_in_text`); empty if the text is clean.
    """

    text: str
    target: str
    locale: str
    form: str
    noise: tuple[str, ...] = ()


def split_of(day: datetime.date) -> str:
    """Return the split that a day belongs to: 8 days in 10 train, 1 validation, 1 test.

    Fixed once and for all by a hash of the ISO date, whatever the seed of a sample. Training text
    also has the 29 February of every other split: which years have one is a fact to be learned.
    """
    digest = hashlib.sha256(day.isoformat().encode()).digest()
    return (*("train",) * 8, "validation", "test")[int.from_bytes(digest[:8], "big") % 10]


@cache
def days(split: str) -> tuple[datetime.date, ...]:
    """Return all days of a split from `FIRST_DAY` to `LAST_DAY`, in order."""
    if split not in SPLITS:
        raise ValueError(f"days: split must be one of {', '.join(SPLITS)}; received {split!r}.")
    count = (LAST_DAY - FIRST_DAY).days + 1
    every = (FIRST_DAY + datetime.timedelta(number) for number in range(count))
    return tuple(day for day in every if split_of(day) == split)


@cache
def _leap_days():
    """Return every 29 February, of whatever split."""
    every = (day for split in SPLITS for day in days(split))
    return tuple(sorted(day for day in every if (day.month, day.day) == (2, 29)))


def sample(
    split: str,
    count: int,
    seed: int,
    noisy: float = False,
    locales: Sequence[str] = LOCALES,
    in_text: float = 0.0,
) -> list[Example]:
    """Draw examples, as many of each locale as of any other (but for a rest), in random order.

    Args:
        split: "train", "validation" or "test": whose days.
        count: how many examples.
        seed: an integer. The same arguments give the same examples on every machine.
        noisy: the share of noisy examples, 0 to 1; False is 0 and True is 1.
        locales: some of `LOCALES`.
        in_text: the share of dates as they stand in text, and of texts that hold none; `noisy` is
            the share of the others.

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
    for name, share in (("noisy", noisy), ("in_text", in_text)):
        if not 0 <= share <= 1:
            raise ValueError(f"sample: {name} must be a share from 0 to 1; received {share!r}.")
    pool = days(split)
    shares = f"{float(noisy)} {float(in_text)}" if in_text else f"{float(noisy)}"
    rng = random.Random(f"{split} {count} {seed} {shares} {' '.join(locales)}")
    examples = []
    for number in range(count):
        day, locale = pick(rng, pool), locales[number % len(locales)]
        if in_text and rng.random() < in_text:
            examples.append(_example_in_text(rng, day, locale, split))
        elif rng.random() < noisy:
            examples.append(_noisy_example(rng, day, locale))
        else:
            examples.append(clean_example(day, locale, pick(rng, FORMS)))
    return sorted(examples, key=lambda example: rng.random())


def clean_example(day: datetime.date, locale: str, form: str) -> Example:
    """Return the `Example` of a day as Babel writes it in one of `FORMS`."""
    text = "".join(text for _, text in _write(day, locale, form))
    return Example(f"{locale}|{text}", day.isoformat(), locale, form)


def _noisy_example(rng, day, locale):
    """Draw a form and changes until at least one change shows."""
    while True:
        form = pick(rng, FORMS)
        wanted = [name for name, chance in NOISE.items() if rng.random() < chance]
        text, noise = add_noise(rng, day, locale, _write(day, locale, form), wanted)
        if noise:
            return Example(f"{locale}|{text}", day.isoformat(), locale, form, noise)


def _example_in_text(rng, day, locale, split):
    if split == "train" and rng.random() < LEAP_DAYS:
        day = pick(rng, _leap_days())
    text, holds, made = dates_in_text.draw(rng, locale, day, split, _usual)
    return Example(f"{locale}|{text}", day.isoformat() if holds else NONE, locale, "text", made)


def _usual(rng, day, locale):
    """Return the text of a day, clean or noisy, without the locale."""
    form = pick(rng, FORMS)
    pieces = _write(day, locale, form)
    if not isinstance(day, datetime.date) or rng.random() < 0.5:
        return "".join(text for _, text in pieces)
    return _noisy_example(rng, day, locale).text.partition("|")[2]


@cache
def characters() -> str:
    """Return the sorted string of the characters of examples, in any locale.

    Beside dates there may be words of other characters, which a model need not know.
    """
    symbols = set("0123456789-|").union(*LOCALES)
    for locale in LOCALES:
        symbols.update(dates_in_text.characters(locale))
        symbols.update(*(typed_characters(locale, _pattern(locale, form)) for form in FORMS))
    return "".join(sorted(symbols))


@cache
def max_length() -> int:
    """Return the length of the longest text of a clean or noisy example."""
    return max(
        len(f"{locale}|") + typed_length(locale, _pattern(locale, form))
        for locale in LOCALES
        for form in FORMS
    )


def _write(day, locale, form):
    """Return the day's pieces, a list of (symbol, text)."""
    pattern = _pattern(locale, form)
    return [(symbol, _field(day, locale, symbol) if symbol else text) for symbol, text in pattern]


def _field(day, locale, symbol):
    if symbol in NAMES:
        return name_of(day, locale, symbol)
    number = {"y": day.year, "M": day.month, "d": day.day}[symbol[0]]
    return f"{number:0{len(symbol)}}"


@cache
def _pattern(locale, form):
    """Return CLDR's pattern as a tuple of (symbol, literal), one of them empty."""
    pattern = []
    for kind, value in tokenize_pattern(get_date_format(form, locale).pattern):
        if kind == "field":
            symbol, length = value
            pattern.append(("y" if symbol == "y" else symbol * length, ""))
        else:
            pattern.append(("", unicodedata.normalize("NFC", value)))
    return tuple(pattern)
