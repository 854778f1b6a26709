import collections
import datetime
import re
import unicodedata
from types import SimpleNamespace

import pytest
from babel.dates import format_date, get_date_format
from rapidfuzz.distance import OSA

from seqkeras.data import date_noise, dates
from tests.seqkeras.data import date_reader

DAY = datetime.date(2014, 10, 3)
PIECES = [("d", "3"), ("", ". "), ("MMMM", "Oktober"), ("", " "), ("y", "2014")]


def clean_text(example):
    day = datetime.date.fromisoformat(example.target)
    return dates.clean_example(day, example.locale, example.form).text


# The changes.


def test_the_german_3_october_2014_is_mistyped_as_documented():
    draws = {"place": 0, "letter": 3 / 7, "drop": 0, "lower": 0, "stop": 0}
    rng = SimpleNamespace(random=iter(draws.values()).__next__)
    wanted = ("case", "punctuation", "two_digit_year", "slip")
    assert date_noise.add_noise(rng, DAY, "de", PIECES, wanted) == ("3 oktber 14", wanted)


def test_only_what_shows_is_called_noise():
    wanted = ("short_month", "slip", "two_digit_year")
    pieces = [("y", "2014"), ("", "-"), ("MM", "10"), ("", "-"), ("dd", "03")]
    assert date_noise.add_noise(None, DAY, "sv", pieces, wanted) == ("2014-10-03", ())
    assert date_noise.add_noise(None, DAY, "de", PIECES, ()) == ("3. Oktober 2014", ())


@pytest.mark.parametrize(
    ("noise", "field", "shorter"), [("short_month", "MMMM", "MMM"), ("two_digit_year", "y+", "yy")]
)
def test_a_shorter_field_is_what_babel_writes(noisy, noise, field, shorter):
    examples = [example for example in noisy if example.noise == (noise,)]
    assert len(examples) > 30
    for text, target, locale, form, _ in examples:
        pattern = get_date_format(form, locale).pattern.replace("yy", "y")
        day = datetime.date.fromisoformat(target)
        expected = format_date(day, re.sub(field, shorter, pattern), locale)
        assert text == f"{locale}|{unicodedata.normalize('NFC', expected)}"


def test_a_slip_is_one_edit(noisy):
    for example in noisy:
        if example.noise == ("slip",):
            slipped = date_reader.fold(example.locale, example.text)
            clean = date_reader.fold(example.locale, clean_text(example))
            assert OSA.distance(slipped, clean) == 1, example


# What they leave: one reading.


def test_a_noisy_text_has_one_reading_and_differs_from_the_clean_one(noisy):
    for example in noisy:
        assert date_reader.readings(example) == {example.target}, example
        assert example.noise and example.text != clean_text(example), example
        assert unicodedata.is_normalized("NFC", example.text), example


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


def test_two_digit_years_stand_last_or_are_marked(noisy):
    for example in noisy:
        if "two_digit_year" not in example.noise:
            continue
        year = example.target[2:4]
        assert example.form != "full" and example.target[:4] not in example.text
        last = re.findall(r"\d+", example.text)[-1] == year
        marked = re.search(rf"\|{year}[년年]", example.text)
        cldr = example.locale == "ko" and re.match(rf"ko\|{year}\D", example.text)
        assert last or marked or cldr, example
        assert not re.search(rf"\d +{year}$|\|{year} +\d", example.text), example
        assert not re.search(rf"(tháng|thg) \d+\W+{year}$", example.text.lower()), example


def test_capitals_are_those_of_the_locales_keyboard():
    examples = dates.sample("train", 8_009, seed=6, noisy=True, locales=("tr", "el"))
    texts = collections.defaultdict(str)
    for example in examples:
        assert "\u0307" not in example.text, example  # the dot that Python leaves of a lower İ
        if "slip" not in example.noise:
            texts[example.locale] += example.text + " "
    assert "NİSAN" in texts["tr"] and "KASIM" in texts["tr"] and "kasım" in texts["tr"]
    assert not re.search("NISAN|kasim|KASİM", texts["tr"])
    assert "ΜΑΪΟΥ" in texts["el"] and "ΙΟΥΛΙΟΥ" in texts["el"] and "ιουλίου" in texts["el"]
    assert not re.search("[ΆΈΉΊΌΎΏ\u0301]", texts["el"])
