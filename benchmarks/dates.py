"""Dates people write: a bundle's answers beside dateparser's, how many are right and how fast.

    python -m benchmarks.dates BUNDLE [--by-locale] [--json FILE] [--quick]

Test dates (days that no training saw) in every locale of the bundle, clean and noisy. Both get the
locale: ours as the prefix of the text, dateparser as the one locale of a `DateDataParser`, which
is made once. What else helps dateparser:

    order of the fields  comes with its locales, from CLDR: en-GB has the day first, sv the year
    two-digit years      it reads 50-68 as 20xx, our texts mean 19xx: such an answer is put back by
                         a century
    unknown words        IGNORE_SURROUNDING_TEXT, so that a slip in a weekday costs nothing: 9 %
                         more of the noisy dates are right
    parsers              only the one of absolute dates: a third less time, the same answers

`--dateparser default` lets it try all its parsers, as it does unless told otherwise;
`--dateparser plain` calls `dateparser.parse(text)` with no help at all, as most programs do.

Every text that is timed is new to both. In a batch of 64, ours gets a list, dateparser, which takes
no lists, 64 calls.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import harness
from seqkeras import serving
from seqkeras.data.dates import LAST_DAY, LOCALES, sample

BATCH_SIZE = 64
ACCURACY_SEED, TIME_SEED = 1, 2
LAST_OF_TWO_DIGITS = 2068  # what 68 is for dateparser; 69 is 1969
SETTINGS = {"IGNORE_SURROUNDING_TEXT": True}
ABSOLUTE_ONLY = {"PARSERS": ["absolute-time"]}


class Rival:
    """dateparser, with one parser for each locale, or with no help.

    Args:
        locales: as in `seqkeras.data.dates`.
        help: "tuned", "default" or "plain", as above.
    """

    def __init__(self, locales, help):
        make = harness.import_rival("dateparser").DateDataParser
        if help == "plain":
            self.parsers = dict.fromkeys(locales, make())  # what dateparser.parse(text) calls
            return
        settings = SETTINGS | (ABSOLUTE_ONLY if help == "tuned" else {})
        self.parsers = {
            locale: make(locales=[locale.replace("_", "-")], settings=settings)
            for locale in locales
        }

    def __call__(self, text):
        """Return the ISO date of a text, locale first; None if it can not read it."""
        locale, _, rest = text.partition("|")
        found = self.parsers[locale].get_date_data(rest).date_obj
        if found is None:
            return None
        if LAST_DAY.year < found.year <= LAST_OF_TWO_DIGITS:
            found = found.replace(year=found.year - 100)
        return found.date().isoformat()


def measure(options):
    """Count right answers, then time; returns the rows."""
    pipeline = serving.load(options.bundle, threads=options.threads)
    if pipeline.manifest.task != "dates":
        raise ValueError(
            f"{options.bundle}: a bundle of the dates task is needed; received one of the task "
            f"{pipeline.manifest.task!r}."
        )
    locales = [locale for locale in LOCALES if locale in pipeline.manifest.text_prefix.values]
    rival = Rival(locales, options.dateparser)
    count = 2 if options.quick else options.examples
    rows, shares = [], {}
    for kind, noisy in (("clean", 0), ("noisy", 1)):
        examples = sample("test", count * len(locales), ACCURACY_SEED, noisy, locales)
        texts = [example.text for example in examples]
        ours = _shares_right(examples, [answer.text for answer in pipeline(texts)], locales)
        theirs = _shares_right(examples, map(rival, texts), locales)
        shares[kind] = {"ours": ours, "dateparser": theirs}
        ratio = ours["all"] / max(theirs["all"], 0.01)
        rows.append(
            harness.Row(
                f"dates {kind} vs dateparser", ours["all"], theirs["all"], "% right", ratio, goal=1
            )
        )
        for batch_size, goal in ((1, 1), (BATCH_SIZE, 10)):
            rounds = 1 if options.quick else max(1, options.dates // batch_size)
            times = _times(pipeline, rival, locales, noisy, batch_size, rounds)
            rows.append(
                harness.compare_times(
                    f"dates {kind} b{batch_size} vs dateparser",
                    times["ours"],
                    times["dateparser"],
                    "ms/date",
                    1000 / batch_size,
                    goal,
                )
            )
    if options.by_locale:
        _print_by_locale(shares, locales)
    print(
        f"measured on {2 * count} test dates in each of {len(locales)} locales; "
        f"{_machine()}; ours {options.bundle}, dateparser in one thread"
    )
    return rows


def _shares_right(examples, answers, locales):
    """Return the percentage right in all, under "all", and per locale."""
    right = {group: [] for group in ("all", *locales)}
    for example, answer in zip(examples, answers, strict=True):
        for group in ("all", example.locale):
            right[group].append(answer == example.target)
    return {group: 100 * sum(marks) / len(marks) for group, marks in right.items()}


def _times(pipeline, rival, locales, noisy, batch_size, rounds):
    """Return seconds for each batch, of both in turn."""
    count = (rounds + harness.WARM_UP) * batch_size
    texts = [example.text for example in sample("test", count, TIME_SEED, noisy, locales)]
    batches = [texts[start : start + batch_size] for start in range(0, count, batch_size)]
    return harness.times_in_turn(
        {
            "ours": lambda number: pipeline(batches[number]),
            "dateparser": lambda number: [rival(text) for text in batches[number]],
        },
        rounds,
    )


def _print_by_locale(shares, locales):
    columns = [(kind, name) for kind in shares for name in shares[kind]]
    harness.print_table(
        ["% right", *(f"{kind} {name}" for kind, name in columns)],
        [
            [group, *(f"{shares[kind][name][group]:.1f}" for kind, name in columns)]
            for group in (*locales, "all")
        ],
    )


def _machine():
    dateparser = harness.import_rival("dateparser")
    return harness.machine(
        onnxruntime=onnxruntime.__version__,
        NumPy=np.__version__,
        dateparser=dateparser.__version__,
    )


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("dates", __doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="Folder of the bundle.")
    parser.add_argument(
        "--by-locale", action="store_true", help="Print the share right in each locale."
    )
    parser.add_argument(
        "--examples",
        type=harness.count,
        default=100,
        help="Texts of a locale and kind. Default: 100.",
    )
    parser.add_argument(
        "--dates", type=harness.count, default=1280, help="Timed dates of each kind. Default: 1280."
    )
    parser.add_argument(
        "--dateparser",
        choices=["tuned", "default", "plain"],
        default="tuned",
        help="Help that dateparser gets. Default: tuned.",
    )
    parser.add_argument(
        "--threads",
        type=harness.count,
        help="Threads of an operation of ours. Default: one a core.",
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
