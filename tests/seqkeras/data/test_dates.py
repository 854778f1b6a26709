import collections
import datetime
import os
import subprocess
import sys
import unicodedata

import pytest
from babel.dates import format_date, get_date_format

from seqkeras.data import dates
from tests.refusals import refusals
from tests.seqkeras.data.date_reader import readings

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


# Clean text.


@pytest.mark.parametrize("form", dates.FORMS)
@pytest.mark.parametrize("locale", dates.LOCALES)
def test_clean_text_is_what_babel_writes(locale, form):
    pattern = form
    if form == "short":  # ours has a four-digit year where CLDR has two digits
        pattern = get_date_format(form, locale).pattern.replace("yy", "y")
    for day in dates.days("test")[::331]:
        expected = unicodedata.normalize("NFC", format_date(day, pattern, locale))
        assert dates.clean_example(day, locale, form).text == f"{locale}|{expected}"


def test_a_clean_text_has_one_reading():
    for example in dates.sample("test", 2_003, seed=3):
        assert readings(example) == {example.target}, example


# The sample.


def test_a_sample_has_as_many_examples_of_each_locale():
    counts = collections.Counter(e.locale for e in dates.sample("train", 28 * 7, seed=1))
    assert counts == dict.fromkeys(dates.LOCALES, 7)


def test_noisy_is_the_share_of_noisy_examples():
    for share, low, high in ((False, 0, 0), (0.25, 0.2, 0.3), (True, 1, 1)):
        examples = dates.sample("train", 2_003, seed=1, noisy=share)
        assert low <= sum(bool(example.noise) for example in examples) / 2_003 <= high


@pytest.mark.long
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
    examples = [*noisy, *dates.sample("validation", 9_001, seed=4, in_text=0.7)]
    examples = [each for each in examples if each.text.isprintable()]
    foreign = {"words", "no_date", "weekday", "incomplete"}  # with letters that no model need know
    of_dates = {c for each in examples if foreign.isdisjoint(each.noise) for c in each.text}
    known, written = set(dates.characters()), {c for each in examples for c in each.text}
    assert dates.characters() == "".join(sorted(known))
    assert of_dates <= known
    assert set("0123456789-") <= known  # the targets
    rarest = set(filter(str.isprintable, known - written))  # capitals of letters that are written
    assert len(rarest) < 30 and {each.lower() for each in rarest} <= written


def test_the_longest_text_is_a_clean_one_and_a_doubled_letter(noisy):
    year = [datetime.date(2014, 1, 1) + datetime.timedelta(number) for number in range(365)]
    longest = max(
        len(dates.clean_example(day, locale, "full").text)
        for locale in dates.LOCALES
        for day in year
    )
    assert dates.max_length() == longest + 1
    assert max(len(example.text) for example in noisy) <= dates.max_length()


def sample(**options):
    return lambda: dates.sample(**{"split": "test", "count": 3, "seed": 1, **options})


test_wrong_arguments_are_named = refusals(
    (sample(split="dev"), "days: split must be one of train, validation, test; received 'dev'."),
    (sample(in_text=-1), "sample: in_text must be a share from 0 to 1; received -1."),
    (sample(noisy=1.5), "sample: noisy must be a share from 0 to 1; received 1.5."),
    (sample(locales=("de", "xx")), "sample: locales must be some of en_US, ..., nb; received xx."),
    (sample(locales=()), "sample: locales must be some of en_US, ..., nb; received none."),
)
