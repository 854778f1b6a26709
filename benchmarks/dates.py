"""Dates people write: a bundle's answers beside dateparser's, how many are right and how fast.

    python -m benchmarks.dates BUNDLE [--by-locale] [--json FILE] [--quick]

Test dates (days that no training saw) in every locale of the bundle, clean and noisy. Both get the
locale: ours as the prefix of the text, dateparser as the one locale of a `DateDataParser`, which
is made once. What else helps dateparser:

    order of the fields   comes with its locales, from CLDR: en-GB has the day first, sv the year
    two-digit years       it reads 50-68 as 20xx, our texts mean 19xx: an answer after 2049 is put
                          back by a century
    words it can not read IGNORE_SURROUNDING_TEXT: a slip in a weekday then costs nothing (+9 % of
                          the noisy dates right)
    other parsers         "absolute only" also drops its parsers of timestamps and of relative
                          dates ("in 2 days"), for who knows that only dates will come

Every text that is timed is new to both. One at a time, each is asked for one date; 64 at a time,
ours gets a list of 64, dateparser, which takes no lists, 64 calls.
"""

import datetime
import sys

import serving
from benchmarks import harness
from seqkeras.data.dates import LAST_DAY, LOCALES, sample

BATCH_SIZE = 64
ACCURACY_SEED, TIME_SEED = 1, 2
SETTINGS = {
    "dateparser": {"IGNORE_SURROUNDING_TEXT": True},
    "dateparser, absolute only": {
        "IGNORE_SURROUNDING_TEXT": True,
        "PARSERS": ["absolute-time"],
    },
}


class Rival:
    """dateparser, with one parser for each locale.

    Args:
        locales: as in `seqkeras.data.dates`.
        settings: of dateparser.
    """

    def __init__(self, locales, settings):
        parser = harness.import_rival("dateparser").DateDataParser
        self.parsers = {
            locale: parser(locales=[locale.replace("_", "-")], settings=settings)
            for locale in locales
        }

    def __call__(self, text):
        """The ISO date of a text, locale first; None if it can not read it."""
        locale, _, rest = text.partition("|")
        found = self.parsers[locale].get_date_data(rest).date_obj
        if found is None:
            return None
        date = found.date()
        return (_a_century_before(date) if date > LAST_DAY else date).isoformat()


def measure(options):
    """Count right answers, then time; returns the rows."""
    pipeline = serving.load(options.bundle)
    if pipeline.manifest.task != "dates":
        raise ValueError(
            f"{options.bundle}: a bundle of the dates task is needed; received one of the task "
            f"{pipeline.manifest.task!r}."
        )
    locales = [each for each in LOCALES if each in pipeline.manifest.text_prefix.values]
    rivals = {name: Rival(locales, settings) for name, settings in SETTINGS.items()}
    each = 2 if options.quick else options.examples
    rows, shares = [], {}
    for kind, noisy in (("clean", 0), ("noisy", 1)):
        examples = sample("test", each * len(locales), ACCURACY_SEED, noisy, locales)
        answers = {"ours": [answer.text for answer in pipeline([e.text for e in examples])]}
        answers |= {name: [rival(e.text) for e in examples] for name, rival in rivals.items()}
        shares[kind] = {
            name: _shares_right(examples, given, locales) for name, given in answers.items()
        }
        rows += _accuracy_rows(kind, shares[kind])
        rows += _time_rows(pipeline, rivals, locales, kind, noisy, options)
    if options.by_locale:
        _print_by_locale(shares, locales)
    print(
        f"measured on {2 * each} test dates in each of {len(locales)} locales; "
        f"{_machine()}; ours {options.bundle}, dateparser in one thread"
    )
    return rows


def _shares_right(examples, answers, locales):
    """The percentage right in all, under "all", and per locale."""
    right = {group: [] for group in ("all", *locales)}
    for example, answer in zip(examples, answers, strict=True):
        for group in ("all", example.locale):
            right[group].append(answer == example.target)
    return {group: 100 * sum(each) / len(each) for group, each in right.items()}


def _accuracy_rows(kind, shares):
    ours = shares["ours"]["all"]
    for name in SETTINGS:
        theirs = shares[name]["all"]
        ratio = ours / theirs if theirs else float("inf")
        yield harness.Row(f"dates {kind} vs {name}", ours, theirs, "% right", ratio, goal=1)


def _time_rows(pipeline, rivals, locales, kind, noisy, options):
    for batch_size, goal in ((1, 1), (BATCH_SIZE, 10)):
        rounds = 1 if options.quick else options.rounds if batch_size == 1 else options.rounds // 10
        count = (harness.WARM_UP + rounds) * batch_size
        texts = [e.text for e in sample("test", count, TIME_SEED + batch_size, noisy, locales)]
        # The last ones are for the rounds that do not count.
        batches = [texts[i : i + batch_size] for i in range(0, count, batch_size)]
        times = harness.times_in_turn(
            {
                "ours": _taking(batches, pipeline),
                **{
                    name: _taking(batches, lambda texts, rival=rival: [rival(t) for t in texts])
                    for name, rival in rivals.items()
                },
            },
            rounds,
        )
        for name in rivals:
            yield harness.compare_times(
                f"dates {kind} b{batch_size} vs {name}",
                times["ours"],
                times[name],
                "ms/date",
                1000 / batch_size,
                goal,
            )
