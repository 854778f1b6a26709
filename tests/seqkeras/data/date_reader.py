"""A reader of dates, written without the writer: fold, cut into words, try every field order."""

import collections
import datetime
import re
import unicodedata
from functools import cache

from babel import Locale
from babel.dates import get_date_format
from rapidfuzz.distance import OSA

NUMBERED_MONTHS = ("vi", "zh", "ja", "ko")
STAND_ALONE = {  # the months' names that a locale has of its own; Babel may give others to the rest
    **dict.fromkeys(("pl", "cs", "ru", "uk", "el", "fi"), "wide"),
    **dict.fromkeys(("de", "nb"), "abbreviated"),
}


def fold(locale, text):
    """The text without case, marks and spaces that people leave out."""
    if locale == "tr":
        text = text.replace("I", "ı").replace("İ", "i")
    text = unicodedata.normalize("NFD", text.lower())
    if locale == "el":
        text = text.replace("\u0301", "")
    text = re.sub("['ʼ׳॰\u200f]", "", unicodedata.normalize("NFC", text))
    marked = (c if unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return " ".join(re.findall(r"\d+|[^\d\s]+", "".join(marked)))


@cache
def names(locale):
    """{name: what it can mean}, folded, as ("M", 1 to 12) or ("E", 0 to 6)."""
    meanings, cldr = collections.defaultdict(set), Locale.parse(locale)
    tables = [(cldr.months["format"][width], "M") for width in ("wide", "abbreviated")]
    tables += [(cldr.days["format"][width], "E") for width in ("wide", "abbreviated")]
    if locale in STAND_ALONE:
        tables.append((cldr.months["stand-alone"][STAND_ALONE[locale]], "M"))
    if locale == "fi":
        tables.append((cldr.days["stand-alone"]["wide"], "E"))
    for table, kind in tables:
        preposition = "ב" if locale == "he" and kind == "M" else ""
        for number, name in table.items():
            meanings[fold(locale, preposition + name)].add((kind, number))
    return meanings


def nearest(locale, word, kind):
    """The months or weekdays that a word can mean; all that are nearest, of the other kind too."""
    meant = names(locale)
    if word in meant:
        return {number for other, number in meant[word] if other == kind}
    distances = collections.defaultdict(lambda: 99)
    for name, meanings in meant.items():
        for meaning in meanings:
            distance = OSA.distance(word.replace(" ", ""), name.replace(" ", ""))
            distances[meaning] = min(distances[meaning], distance)
    best = [meaning for meaning in distances if distances[meaning] == min(distances.values())]
    return {number if other == kind else (other, number) for other, number in best}


@cache
def orders(locale):
    """The regular expressions of the locale's four patterns, over folded text."""
    expressions, literals = [], set()
    for form in ("full", "long", "medium", "short"):
        pattern = get_date_format(form, locale).pattern
        literals.update(re.findall(r"'(\w+)'", pattern))
        fields = re.finditer(r"([EcMdy])\1*", re.sub(r"'\w+'", "", pattern))
        parts = []
        for field, length in ((match[0][0], len(match[0])) for match in fields):
            if field == "y":
                parts.append(r"(?P<y>\d{4}|\d{2})")
            elif field == "d":
                parts.append(r"(?P<d>\d{1,2})")
            elif field == "M" and (length < 3 or locale in NUMBERED_MONTHS):
                parts.append(r"(?P<m>\d{1,2})")
            elif locale not in NUMBERED_MONTHS:
                word = r"[^\d\s]+" if locale == "en_US" else r"\D+"
                parts.append(f"(?P<{'M' if field == 'M' else 'E'}>{word})")
        expressions.append(re.compile(" ".join(parts)))
    return set(expressions), literals


def readings(example):
    """All dates that the text can stand for."""
    locale, found = example.locale, set()
    expressions, literals = orders(locale)
    folded = fold(locale, example.text.split("|", 1)[1])
    if locale in NUMBERED_MONTHS:
        folded = " ".join(re.findall(r"\d+", folded))
    folded = " ".join(word for word in folded.split() if word not in literals)
    for expression in expressions:
        if match := expression.fullmatch(folded):
            fields = match.groupdict()
            year = int(fields["y"])
            if len(fields["y"]) == 2:
                year += 1900 if year >= 50 else 2000
            months = {int(fields["m"])} if "m" in fields else nearest(locale, fields["M"], "M")
            for month in months:
                try:
                    found.add(datetime.date(year, month, int(fields["d"])).isoformat())
                except (TypeError, ValueError):
                    found.add(f"no month: {month}")
    return found
