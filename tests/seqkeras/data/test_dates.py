import collections
import datetime
import os
import re
import subprocess
import sys
import unicodedata
from functools import cache

import pytest
from babel import Locale
from babel.dates import format_date, get_date_format
from rapidfuzz.distance import OSA

from seqkeras.data import dates

DAY = datetime.date(2014, 5, 3)
NUMBERED_MONTHS = ("vi", "zh", "ja", "ko")
STAND_ALONE = {  # the months' names that a locale has of its own; Babel may give others to the rest
    **dict.fromkeys(("pl", "cs", "ru", "uk", "el", "fi"), "wide"),
    **dict.fromkeys(("de", "nb"), "abbreviated"),
}


@pytest.fixture(scope="module")
def noisy():
    return dates.sample("train", 11_003, seed=5, noisy=True)


# A reader written without the writer: fold, cut into words and numbers, try every field order.


def fold(locale, text):
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
    for form in dates.FORMS:
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


# Days and splits.


def test_every_day_of_the_hundred_years_is_in_one_split():
    pools = [dates.days(split) for split in dates.SPLITS]
    together = sorted(day for pool in pools for day in pool)
    count = (datetime.date(2050, 1, 1) - datetime.date(1950, 1, 1)).days
    every = [datetime.date(1950, 1, 1) + datetime.timedelta(number) for number in range(count)]
    assert together == every
    assert [round(len(pool) / count, 2) for pool in pools] == [0.8, 0.1, 0.1]


def test_the_splits_never_change():
    # A run that was trained before must not meet its training days in today's test split.
    pinned = {"train": (1950, 1, 1), "validation": (1950, 1, 13), "test": (1950, 1, 8)}
    assert {split: dates.split_of(datetime.date(*day)) for split, day in pinned.items()} == {
        split: split for split in pinned
    }


@pytest.mark.parametrize("split", dates.SPLITS)
def test_a_sample_stays_in_its_split(split):
    targets = {example.target for example in dates.sample(split, 503, seed=2, noisy=0.5)}
    assert {dates.split_of(datetime.date.fromisoformat(target)) for target in targets} == {split}


# Clean text.


def test_the_german_full_form_of_3_may_2014_reads_as_documented():
    example = dates.clean_example(DAY, "de", "full")
    assert example == ("de|Samstag, 3. Mai 2014", "2014-05-03", "de", "full", ())


def test_the_prefix_decides_the_order_of_day_and_month():
    assert dates.clean_example(DAY, "en_US", "short").text == "en_US|5/3/2014"
    assert dates.clean_example(DAY, "en_GB", "short").text == "en_GB|03/05/2014"
    assert dates.clean_example(DAY, "sv", "short").text == "sv|2014-05-03"


@pytest.mark.parametrize("form", dates.FORMS)
@pytest.mark.parametrize("locale", dates.LOCALES)
def test_clean_text_is_what_babel_writes(locale, form):
    pattern = form
    if form == "short":  # ours has a four-digit year where CLDR has two digits
        pattern = get_date_format(form, locale).pattern.replace("yy", "y")
    for day in dates.days("test")[::127]:
        expected = unicodedata.normalize("NFC", format_date(day, pattern, locale))
        assert dates.clean_example(day, locale, form).text == f"{locale}|{expected}"


def test_a_clean_text_has_one_reading():
    for example in dates.sample("test", 5_003, seed=3):
        assert readings(example) == {example.target}, example


# Noise.


def test_a_noisy_text_has_one_reading(noisy):
    for example in noisy:
        assert readings(example) == {example.target}, example


def test_two_dates_of_a_locale_never_share_a_text(noisy):
    targets = collections.defaultdict(set)
    for example in noisy:
        targets[example.text].add(example.target)
    for locale in dates.LOCALES:
        for month in range(1, 13):  # every month in every form, by brute force
            for number in (1, 12, 31 if month in (1, 3, 5, 7, 8, 10, 12) else 28):
                day = datetime.date(2012, month, number)
                for form in dates.FORMS:
                    text = dates.clean_example(day, locale, form).text
                    for variant in (text, text.lower(), text.upper(), text.replace(".", "")):
                        targets[variant].add(day.isoformat())
    assert [text for text, days in targets.items() if len(days) > 1] == []


def test_abbreviated_months_differ_without_case_and_stops():
    for locale in dates.LOCALES:
        for width in ("wide", "abbreviated"):
            months = Locale.parse(locale).months["format"][width].values()
            assert len({fold(locale, month) for month in months}) == 12, (locale, width)


def test_a_noisy_text_differs_from_the_clean_one(noisy):
    for example in noisy:
        day = datetime.date.fromisoformat(example.target)
        clean = dates.clean_example(day, example.locale, example.form)
        assert example.noise and example.text != clean.text, example


def test_every_noise_comes_in_every_locale_that_can_have_it(noisy):
    seen = collections.defaultdict(set)
    for example in noisy:
        for name in example.noise:
            seen[name].add(example.locale)
    without_case = {"zh", "ja", "ko", "ar", "he", "hi"}
    missing = {name: set(dates.LOCALES) - seen[name] for name in dates.NOISE}
    assert missing == {
        "case": without_case,
        "punctuation": set(),
        "short_month": {"zh", "ja", "ko", "ar"},  # their short names are the long ones
        "two_digit_year": {"ja", "hu"},
        "slip": set(),
    }


def test_a_slipped_name_stays_nearest_to_its_own(noisy):
    checked = collections.Counter()
    for example in noisy:
        if "slip" not in example.noise or example.locale in NUMBERED_MONTHS:
            continue
        day = datetime.date.fromisoformat(example.target)
        expressions, literals = orders(example.locale)
        words = fold(example.locale, example.text.split("|", 1)[1]).split()
        folded = " ".join(word for word in words if word not in literals)
        matches = [match for expression in expressions if (match := expression.fullmatch(folded))]
        for kind, number in (("M", day.month), ("E", day.weekday())):
            for word in {match[kind] for match in matches if kind in match.groupdict()}:
                assert nearest(example.locale, word, kind) == {number}, example
                checked[kind] += word not in names(example.locale)
    assert checked["M"] > 500 and checked["E"] > 200


@pytest.mark.parametrize(
    ("locale", "word", "own", "expected"),
    [
        ("en_US", "Janury", ("months", 0), True),
        ("en_US", "Jn", ("months", 0), False),  # as near to Jun
        ("en_US", "Jupe", ("months", 5), True),
        ("en_US", "Juny", ("months", 5), False),  # as near to July
        ("cs", "července", ("months", 6), True),
        ("cs", "červene", ("months", 6), False),  # as near to June's nominative, červen
        ("tr", "NİSN", ("months", 3), True),
        ("ja", "曜日", ("days", 2), False),
    ],
)
def test_a_word_as_near_to_another_name_is_refused(locale, word, own, expected):
    assert dates.is_nearest(locale, word, own) is expected


def test_numbers_are_never_joined_or_split(noisy):
    for example in noisy:
        day = datetime.date.fromisoformat(example.target)
        numbers = [int(number) for number in re.findall(r"\d+", example.text)]
        year = day.year % 100 if "two_digit_year" in example.noise else day.year
        with_month = sorted([day.day, day.month, year])
        assert sorted(numbers) in (with_month, sorted([day.day, year])), example


def test_two_digit_years_stand_last_or_are_marked(noisy):
    for example in noisy:
        if "two_digit_year" not in example.noise:
            continue
        year = example.target[2:4]
        assert example.target[:4] not in example.text
        last = re.findall(r"\d+", example.text)[-1] == year
        marked = re.search(rf"\|{year}[년年]", example.text)
        cldr = example.locale == "ko" and re.match(rf"ko\|{year}\D", example.text)
        assert last or marked or cldr, example
        assert not re.search(rf"\d +{year}$|\|{year} +\d", example.text), example


def test_capitals_are_those_of_the_locales_keyboard():
    examples = dates.sample("train", 8_009, seed=6, noisy=True, locales=("tr", "el"))
    texts = collections.defaultdict(str)
    for example in examples:
        if "slip" not in example.noise:
            texts[example.locale] += example.text + " "
    assert "NİSAN" in texts["tr"] and "KASIM" in texts["tr"] and "kasım" in texts["tr"]
    assert not re.search("NISAN|kasim|KASİM|\u0307", texts["tr"])
    assert "ΜΑΪΟΥ" in texts["el"] and "ΙΟΥΛΙΟΥ" in texts["el"] and "ιουλίου" in texts["el"]
    assert not re.search("[ΆΈΉΊΌΎΏ\u0301]", texts["el"])


def test_all_text_is_nfc(noisy):
    for example in noisy:
        assert unicodedata.is_normalized("NFC", example.text), example


# The sample.


def test_a_sample_has_as_many_examples_of_each_locale():
    counts = collections.Counter(e.locale for e in dates.sample("train", 28 * 7, seed=1))
    assert counts == dict.fromkeys(dates.LOCALES, 7)


def test_noisy_is_the_share_of_noisy_examples():
    for share, low, high in ((False, 0, 0), (0.25, 0.2, 0.3), (True, 1, 1)):
        examples = dates.sample("train", 2_003, seed=1, noisy=share)
        assert low <= sum(bool(example.noise) for example in examples) / 2_003 <= high


def test_a_sample_depends_on_its_arguments_only():
    program = (
        "import sys; from babel import Locale\n"
        "if sys.argv[1] == 'zh': Locale.parse('zh').months['stand-alone']['wide']\n"
        "from seqkeras.data import dates\n"
        "print(ascii(dates.sample('test', 1009, seed=7, noisy=0.8)), dates.max_length())\n"
        "print(ascii(dates.characters()))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, asked_first],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for asked_first, hash_seed in (("nothing", "1"), ("zh", "2"))
    ]
    here = dates.sample("test", 1009, seed=7, noisy=0.8)
    assert outputs[0] == outputs[1]
    assert outputs[0].decode().startswith(ascii(here))
    assert dates.sample("test", 1009, seed=8, noisy=0.8) != here


def test_the_alphabet_covers_what_is_written_and_no_more(noisy):
    texts = [example.text for example in (*noisy, *dates.sample("validation", 3_001, seed=4))]
    written = set("".join(texts))
    assert dates.characters() == "".join(sorted(set(dates.characters())))
    assert written <= set(dates.characters())
    assert set("0123456789-") <= set(dates.characters())  # the targets
    assert len(set(dates.characters()) - written) <= 5  # the rarest letters of slips


def test_the_longest_text_is_a_clean_one_and_a_doubled_letter(noisy):
    year = [datetime.date(2014, 1, 1) + datetime.timedelta(number) for number in range(365)]
    longest = max(
        len(dates.clean_example(day, locale, "full").text)
        for locale in dates.LOCALES
        for day in year
    )
    assert dates.max_length() == longest + 1
    assert max(len(example.text) for example in noisy) <= dates.max_length()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"split": "dev"},
            r"^days: split must be one of train, validation, test; received 'dev'\.$",
        ),
        ({"noisy": 1.5}, r"^sample: noisy must be a share from 0 to 1; received 1\.5\.$"),
        (
            {"locales": ("de", "xx")},
            r"^sample: locales must be some of en_US, .*, nb; received xx\.$",
        ),
        ({"locales": ()}, r"^sample: locales must be some of en_US, .*, nb; received none\.$"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        dates.sample(**{"split": "test", "count": 3, "seed": 1, **arguments})
