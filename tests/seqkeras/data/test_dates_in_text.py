"""Dates within text, and texts without one, held against the calendar and against each other."""

import collections
import datetime
import re

import pytest

from seqkeras.data import date_words, dates, dates_in_text
from seqkeras.data.dates_in_text import DIGITS, DRESS, NO_DATES, NONE, WRITINGS

PLAIN = str.maketrans("".join(DIGITS.values()), 2 * "0123456789")


@pytest.fixture(scope="module")
def examples():
    return dates.sample("train", 9_001, seed=3, in_text=1.0)


def text_of(example):
    return example.text.partition("|")[2].translate(PLAIN)


def test_answers_are_the_days_of_a_hundred_years_and_none():
    answers, right = re.compile(dates.ANSWERS), {NONE}
    right.update(day.isoformat() for split in dates.SPLITS for day in dates.days(split))
    for year in range(1940, 2061):
        for month in range(14):
            for day in range(33):
                text = f"{year}-{month:02}-{day:02}"
                assert bool(answers.fullmatch(text)) == (text in right), text
    assert answers.fullmatch(NONE) and not answers.fullmatch("")


def test_every_writing_and_every_dress_comes_in_its_share(examples):
    counts = collections.Counter(example.noise[0] for example in examples)
    assert set(counts) == {*WRITINGS, *NO_DATES}
    held = sum(example.target != NONE for example in examples) / len(examples)
    assert held == pytest.approx(1 - dates_in_text.SHARE_OF_NONE, abs=0.02)
    dressed = collections.Counter(name for example in examples for name in example.noise[1:])
    assert set(dressed) == set(DRESS)
    assert {example.noise[0] in NO_DATES for example in examples if example.target == NONE} == {
        True
    }


def test_an_iso_date_is_its_own_target(examples):
    checked = 0
    for example in examples:
        if example.noise == ("iso",):
            assert re.sub("[/.]", "-", text_of(example)) in (
                example.target,
                example.target.replace("-", ""),
            )
            checked += 1
    assert checked > 100


def test_numbers_are_in_the_locales_order_or_leave_no_choice(examples):
    for example in examples:
        if example.noise[:1] != ("numbers",) or example.noise[1:]:
            continue
        numbers = [int(each) for each in re.findall(r"\d+", text_of(example))]
        orders = {"en_US": [(2, 0, 1)], "sv": [(0, 1, 2)]}.get(example.locale)
        if orders is None:
            own = example.locale in ("zh", "ja", "ko", "hu")
            orders = [(0, 1, 2)] if own else [(2, 1, 0)]
        day = datetime.date.fromisoformat(example.target)
        found = [numbers[place] for place in orders[0]]
        if day.day > 12 and found[1:] != [day.month, day.day]:
            assert sorted(numbers) == sorted([day.year, day.month, day.day]), example
        else:
            assert [found[0] % 100, *found[1:]] == [day.year % 100, day.month, day.day], example


def test_an_invalid_date_is_in_no_calendar(examples):
    checked = 0
    for example in examples:
        numbers = [int(each) for each in re.findall(r"\d+", text_of(example))]
        if example.noise != ("invalid",) or len(numbers) != 3:
            continue
        years = [number for number in numbers if number > 99]
        if not years:  # a short year of a locale that has one
            continue
        numbers.remove(years[0])
        for month, day in (numbers, reversed(numbers)):
            with pytest.raises(ValueError):
                datetime.date(years[0], month, day)
        checked += 1
    assert checked > 50


def test_another_year_is_outside_the_hundred(examples):
    checked = 0
    for example in examples:
        if example.noise == ("other_year",):
            written = re.findall(r"\d{4}", text_of(example))
            assert written and not any(1950 <= int(year) <= 2049 for year in written[:1]), example
            checked += 1
    assert checked > 50


def test_no_text_has_two_targets(examples):
    targets = collections.defaultdict(set)
    for example in (*examples, *dates.sample("train", 9_001, seed=4, noisy=0.5)):
        targets[example.text].add(example.target)
    assert [text for text, found in targets.items() if len(found) > 1] == []


def test_digits_of_the_locale_stand_for_all_digits(examples):
    for locale, digits in DIGITS.items():
        changed = [e for e in examples if e.locale == locale and "digits" in e.noise]
        assert len(changed) > 20
        for example in changed:
            assert set(digits) & set(example.text) and not re.search("[0-9]", example.text)


def test_words_of_one_split_are_in_no_other():
    for locale in ("de", "ru", "ja"):
        pools = [set(date_words.words(locale, split)) for split in dates.SPLITS]
        assert all(pools) and not (pools[0] & pools[1] | pools[0] & pools[2] | pools[1] & pools[2])


@pytest.mark.parametrize("split", dates.SPLITS)
def test_a_sample_in_text_stays_in_its_split_but_for_the_leap_days_of_training(split):
    found = {e.target for e in dates.sample(split, 9_001, seed=2, in_text=1.0)} - {NONE}
    leap_days = {f"{year}-02-29" for year in range(1952, 2050, 4)}
    if split == "train":
        assert leap_days < found
        found -= leap_days
    assert {dates.split_of(datetime.date.fromisoformat(target)) for target in found} == {split}
