"""Dates as they stand in text, and text that holds none.

    en_US|due 2014-05-03T10:30:00Z      ->  2014-05-03
    de|Sitzung vom 03/05/2014, 10.30    ->  2014-05-03
    fr|31 février 2014                  ->  none

A date is written in one of `WRITINGS`, then surrounded by text of `DRESS`. A text without a date is
one of `NO_DATES`, surrounded in the same way, so that the surroundings reveal nothing.

Numbers are read in the order of the locale, whatever separates them; in the other one only where a
number over 12 leaves no choice; and year, month, day where the year stands first.

A date is none if its day is not in the calendar, or its year is not one of 1950 to 2049, or
the text lacks a day, a month or a year. Left out: two dates in one text, days relative to today.
"""

import datetime
import random
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from babel.dates import format_skeleton, format_time, get_date_format, get_datetime_format

from seqkeras.data import date_words
from seqkeras.data.date_noise import lower_case, name_of, pick, typed_characters, upper_case

NONE = "none"  # the answer to a text that holds no date
WRITINGS = {  # how often a date is written so
    "usual": 0.3,  # as CLDR or as people with their noise
    "iso": 0.25,
    "numbers": 0.25,
    "names": 0.2,  # the fields in any order, the month a name
}
NO_DATES = {"invalid": 0.45, "other_year": 0.2, "incomplete": 0.15, "no_date": 0.2}
SHARE_OF_NONE = 0.35
DRESS = {"weekday": 0.15, "time": 0.35, "words": 0.45, "digits": 0.35}
DIGITS = {"ar": "٠١٢٣٤٥٦٧٨٩", "hi": "०१२३४५६७८९"}
ASCII = "".join(map(chr, range(32, 127)))
LONGEST = 88  # characters, without the locale: longer ones lose their dress
LONG_NAMES = ("MMMM", "MMM")
WITHOUT_NAMES = ("zh", "ja", "ko", "vi")  # months are numbers there
ZONES = ("", "", "Z", "+02:00", "-05:00", ".123Z", "+0000")
SEPARATORS = ("/", "-", ".")
SIGNS = ("€", "$", "%", "kg", "km", "#", "°C")


class Day(NamedTuple):
    """A day that may not exist in the calendar, with the methods for writing dates."""

    year: int
    month: int
    day: int
    of_week: int

    def weekday(self) -> int:
        return self.of_week


def draw(
    rng: random.Random,
    locale: str,
    day: datetime.date,
    split: str,
    usual: Callable[[random.Random, datetime.date, str], str],
) -> tuple[str, bool, tuple[str, ...]]:
    """Draw a text and its date.

    Args:
        rng: a `random.Random`.
        locale: one of `seqkeras.data.dates.LOCALES`.
        day: a `datetime.date`.
        split: whose words stand around.
        usual: (rng, day, locale) -> the text of a day as it is written without all this.

    Returns:
        The text; whether the day is its date, or it has none; and what was made, as a tuple.
    """
    holds = rng.random() >= SHARE_OF_NONE
    kind = _weighted(rng, WRITINGS if holds else NO_DATES)
    if holds:
        text = _write(rng, kind, locale, day, usual)
    else:
        text = _NONE[kind](rng, locale, day, split, usual)
    text, dress = _dressed(rng, kind, locale, day, split, text)
    return unicodedata.normalize("NFC", text), holds, (kind, *dress)


def characters(locale: str) -> set[str]:
    """Return the set of characters that a model should know; words may have more."""
    return {
        *ASCII,
        *DIGITS.get(locale, ""),
        *date_words.characters(locale),
        *typed_characters(locale, [("EEE", "")]),
        *_of_times(locale),
    }


def _weighted(rng, chances):
    """Draw a key as often as its chance says; the chances add up to 1."""
    point = rng.random()
    for name, chance in chances.items():
        point -= chance
        if point < 0:
            return name
    return name


# Dates.


def _write(rng, kind, locale, day, usual):
    return usual(rng, day, locale) if kind == "usual" else _WRITE[kind](rng, locale, day)


def _iso(rng, locale, day):
    separator = pick(rng, ("-", "-", "-", "/", ".", ""))
    return separator.join((f"{day.year:04}", f"{day.month:02}", f"{day.day:02}"))


def _numbers(rng, locale, day):
    """Return the fields as numbers: in the locale's order, or in another that can only mean the
    same."""
    order = _order(locale)
    if day.day > 12 and rng.random() < 0.3:
        order = pick(rng, (("d", "M", "y"), ("M", "d", "y")))
    separator, padded = pick(rng, SEPARATORS), rng.random() < 0.7
    year = str(day.year)
    if isinstance(day, datetime.date) and _may_be_short(locale, order) and rng.random() < 0.2:
        year = year[-2:]
    fields = {"y": year, "M": _number(day.month, padded), "d": _number(day.day, padded)}
    return separator.join(fields[field] for field in order)


def _names(rng, locale, day):
    """Return the fields in any order, the month a name where the locale has names."""
    if locale in WITHOUT_NAMES:
        return _numbers(rng, locale, day)
    month = name_of(day, locale, pick(rng, LONG_NAMES))
    number = _number(day.day, rng.random() < 0.2)
    if locale.startswith("en") and rng.random() < 0.4:
        number = f"{day.day}{_ordinal(day.day)}"
        if rng.random() < 0.3:
            return f"{pick(rng, ('', 'the '))}{number} of {month}{pick(rng, (' ', ', '))}{day.year}"
    if locale == "fr" and day.day == 1:
        number = "1er"
    fields = pick(
        rng, ((number, month, day.year), (month, number, day.year), (day.year, month, number))
    )
    if fields[0] == month and rng.random() < 0.5:
        return f"{month} {number}, {day.year}"
    text = pick(rng, (" ", " ", "-", "/", ". ")).join(map(str, fields))
    return pick(rng, (text, text, lower_case(locale, text), upper_case(locale, text)))


_WRITE = {"iso": _iso, "numbers": _numbers, "names": _names}


def _number(value, padded):
    return f"{value:02}" if padded else str(value)


def _ordinal(number):
    if number in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


@cache
def _order(locale):
    """Return the order of the fields in the locale's dates of numbers, as ("d", "M", "y")."""
    pattern = get_date_format("short", locale).pattern
    return tuple(sorted("yMd", key=pattern.index))


@cache
def _may_be_short(locale, order):
    """Return whether the year may lose its century: it stands last, as in CLDR's own short form."""
    is_short = get_date_format("short", locale).pattern.count("y") == 2
    return is_short and order == _order(locale) and order[-1] == "y"


# Texts without a date.


def _invalid(rng, locale, day, split, usual):
    """Return a day that no calendar has: 30 February, 31 April, the 25th of a month 13."""
    year, of_week = day.year, int(rng.random() * 7)
    choice = rng.random()
    if choice < 0.65:  # beyond the last day of its month
        month = pick(rng, (2, 2, 4, 6, 9, 11))
        beyond = _last_day(year, month) + 1
        number = beyond if rng.random() < 0.7 else beyond + int(rng.random() * (32 - beyond))
        return _write(
            rng, _weighted(rng, WRITINGS), locale, Day(year, month, number, of_week), usual
        )
    number = 32 + int(rng.random() * 68) if rng.random() < 0.8 else 0
    if choice < 0.85:  # no day of any month
        wrong = Day(year, day.month, number, of_week)
        return _write(rng, _weighted(rng, WRITINGS), locale, wrong, usual)
    month = 13 + int(rng.random() * 87) if rng.random() < 0.8 else 0
    wrong = Day(year, month, 13 + int(rng.random() * 19), of_week)
    return pick(rng, (_iso, _numbers))(rng, locale, wrong)


def _last_day(year, month):
    return (datetime.date(year + month // 12, month % 12 + 1, 1) - datetime.timedelta(1)).day


def _other_year(rng, locale, day, split, usual):
    """Return a real day before 1950 or after 2049."""
    ranges = ((1900, 1950), (1800, 1900), (2050, 2100), (2100, 2300), (1000, 1800), (2300, 10000))
    first, behind = pick(rng, (*3 * ranges[:1], *2 * ranges[1:3], *ranges[3:]))
    year = first + int(rng.random() * (behind - first))
    other = Day(year, day.month, min(day.day, 28), int(rng.random() * 7))
    kind = _weighted(rng, WRITINGS)
    return _write(rng, kind, locale, other, usual)


def _incomplete(rng, locale, day, split, usual):
    """Return a date without its day, its month or its year."""
    choice = rng.random()
    if choice < 0.4:
        return format_skeleton(pick(rng, ("yMMMM", "yMMM", "yM")), day, locale=locale, fuzzy=True)
    if choice < 0.75:
        return format_skeleton(pick(rng, ("MMMd", "MMMMd")), day, locale=locale, fuzzy=True)
    if choice < 0.85:
        return f"{day.year}-{day.month:02}"
    return str(day.year) if choice < 0.95 else name_of(day, locale, "EEEE")


def _no_date(rng, locale, day, split, usual):
    """Return words and numbers that are no date."""
    parts = [_word(rng, locale, split) for _ in range(1 + int(rng.random() * 3))]
    if rng.random() < 0.5:
        parts.append(_quantity(rng))
    if rng.random() < 0.15:
        parts = ["".join(pick(rng, ASCII) for _ in range(3 + int(rng.random() * 15)))]
        parts = [part for part in parts if sum(map(str.isdigit, part)) < 4 and part.strip()]
        parts = parts or [_word(rng, locale, split)]
    return " ".join(sorted(parts, key=lambda part: rng.random()))


_NONE = {
    "invalid": _invalid,
    "other_year": _other_year,
    "incomplete": _incomplete,
    "no_date": _no_date,
}


def _quantity(rng):
    number = int(10 ** (rng.random() * 6))
    choice = rng.random()
    if choice < 0.3:
        return str(number)
    if choice < 0.6:
        return f"{number}{pick(rng, ('', ' '))}{pick(rng, SIGNS)}"
    if choice < 0.8:
        return f"{number % 1000}{pick(rng, '.,')}{number % 97:02} {pick(rng, SIGNS)}"
    groups = (str(100 + int(rng.random() * 9900)) for _ in range(2 + int(rng.random() * 2)))
    return f"+{int(rng.random() * 99)} {' '.join(groups)}"


def _word(rng, locale, split):
    word = pick(rng, (date_words.before(locale), date_words.words(locale, split)))
    word = pick(rng, word)
    return word if rng.random() < 0.7 else word.lower()


# The dress.


def _dressed(rng, kind, locale, day, split, text):
    """Return the text with what may stand around a date, and the names of what does."""
    made = []
    for name, chance in DRESS.items():
        if rng.random() < chance:
            changed = _DRESS[name](rng, kind, locale, day, split, text)
            if changed != text and len(changed) <= LONGEST:
                text = changed
                made.append(name)
    return text, made


def _with_weekday(rng, kind, locale, day, split, text):
    if kind not in ("iso", "numbers", "names", "invalid", "other_year"):
        return text
    weekday = name_of(day, locale, pick(rng, ("EEEE", "EEE")))
    return f"{weekday}{pick(rng, (' ', ', '))}{text}"


def _with_time(rng, kind, locale, day, split, text):
    time = datetime.time(*(int(rng.random() * limit) for limit in (24, 60, 60)))
    if kind == "iso" and "-" in text and rng.random() < 0.5:
        seconds = time.isoformat() if rng.random() < 0.7 else f"{time:%H:%M}"
        return f"{text}T{seconds}{pick(rng, ZONES)}"
    half = f"{time.hour % 12 or 12}:{time.minute:02}"
    noon = "AM" if time.hour < 12 else "PM"
    clocks = f"{time:%H:%M}", f"{time:%H:%M:%S}", f"{half} {noon}", f"{half}{noon.lower()}", ""
    clock = pick(rng, clocks)
    clock = clock or format_time(time, pick(rng, ("short", "medium")), locale=locale)
    if rng.random() < 0.1:
        clock += pick(rng, (" UTC", " Z", " GMT", " +0100", "h", " CET"))
    if rng.random() < 0.3:
        joined = str(get_datetime_format(pick(rng, ("full", "medium")), locale))
        return joined.replace("'", "").replace("{1}", text).replace("{0}", clock)
    first, second = (text, clock) if rng.random() < 0.75 else (clock, text)
    return f"{first}{pick(rng, (' ', ' ', ', ', ' - ', '  '))}{second}"


def _with_words(rng, kind, locale, day, split, text):
    if rng.random() < 0.75:
        for _ in range(1 if rng.random() < 0.7 else 2):
            text = f"{_word(rng, locale, split)}{pick(rng, (' ', ' ', ' ', ', ', ': '))}{text}"
    if rng.random() < 0.35:
        text = f"{text}{pick(rng, (' ', ' ', ', ', '; ', ' - '))}{_word(rng, locale, split)}"
    if rng.random() < 0.2:
        left, right = pick(
            rng, (("(", ")"), ('"', '"'), ("", "."), ("", "!"), ("- ", ""), ("[", "]"))
        )
        text = f"{left}{text}{right}"
    return text


def _with_digits(rng, kind, locale, day, split, text):
    return text.translate(str.maketrans("0123456789", DIGITS.get(locale, "0123456789")))


_DRESS = {
    "weekday": _with_weekday,
    "time": _with_time,
    "words": _with_words,
    "digits": _with_digits,
}


@cache
def _of_times(locale):
    """Return the characters of the locale's times, and of what joins them to dates."""
    times = [datetime.time(hour) for hour in range(24)]
    texts = [format_time(time, "short", locale=locale) for time in times]
    texts += [str(get_datetime_format(form, locale)) for form in ("full", "medium")]
    return set(unicodedata.normalize("NFC", "".join(texts)))
