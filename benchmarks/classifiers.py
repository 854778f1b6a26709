"""The default classifier beside plain methods, and beside its network alone: right answers.

    python -m benchmarks.classifiers banking77 [--folds N]
    python -m benchmarks.classifiers languages

banking77 trains on four fifths of the file in the folder SEQKERAS_DATA and scores the last, fold by
fold. languages are the 5,000 most frequent words of each of five languages in wordfreq, of three
letters at least, that are not among the 20,000 most frequent ones of another; a fifth is held out.
"""

import collections
import csv
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

LANGUAGES = ("en", "de", "fr", "es", "it")
WORDS, COMMON, READ = 5_000, 20_000, 30_000
GOALS = {"banking77": 0.91, "languages": 0.88}
FOLDS = 5


def measure(options):
    """Train every fold with and without the linear part; returns the rows."""
    import_tensorflow()
    folds = 1 if options.quick or options.data == "languages" else options.folds
    shares = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        values = banking77() if options.data == "banking77" else _languages(path, options.quick)
        for fold in range(1, folds + 1):
            values["fold"] = fold
            scores = _trained(values, path / f"{fold}", options.quick)
            shares["model"].append(scores["accuracy"])
            shares["plain"].append(_of_plain_methods(scores))
            alone = {**values, "linear": False, "baselines": False}
            scores = _trained(alone, path / f"{fold}-alone", options.quick)
            shares["alone"].append(scores["accuracy"])
    means = {name: sum(each) / folds for name, each in shares.items()}
    goal = GOALS[options.data] / means["plain"]
    return [
        _row(f"{options.data} vs plain methods", means["model"], means["plain"], goal),
        _row(f"{options.data} vs network alone", means["model"], means["alone"], 1.0),
    ]


def _row(case, ours, rival, goal):
    return harness.Row(case, 100 * ours, 100 * rival, "% right", ours / rival, goal)


def _trained(values, folder, quick):
    from seqkeras.training.tasks.classification import ClassificationOptions
    from seqkeras.training.train import train

    short = {"max_steps": 2} if quick else {}
    train(ClassificationOptions(**values, folds=FOLDS, **short).make(), folder)
    return json.loads((folder / "scores.json").read_text(encoding="utf-8"))


def _of_plain_methods(scores):
    methods = scores["baselines"]["methods"]
    return max(
        score["validation examples right"] for name, score in methods.items() if name != "model"
    )


def banking77():
    """Return the options of Banking77's file."""
    path = Path(os.environ.get("SEQKERAS_DATA", "")) / "banking77/train.csv"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; SEQKERAS_DATA names the folder of the texts")
    return {"file": str(path), "label_column": "category"}


def _languages(folder, quick):
    """Return the options of a file of words, made ones in a smoke run."""
    if quick:
        ends = {"en": "ing", "de": "ung", "fr": "eau", "es": "ión", "it": "zza"}
        rows = [
            (f"{a}{b}{end}", name) for name, end in ends.items() for a in "bdf" for b in "aeiou"
        ]
    else:
        wordfreq = harness.import_rival("wordfreq")
        rows = _rows({name: wordfreq.top_n_list(name, READ) for name in LANGUAGES})
    random.Random(0).shuffle(rows)
    with open(folder / "words.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return {"file": str(folder / "words.csv")}


def _rows(frequent):
    """Return a list of (word, language) of words that one language has."""
    words = {
        name: [word for word in listed if word.isalpha() and len(word) > 2]
        for name, listed in frequent.items()
    }
    known_by = collections.Counter(word for listed in words.values() for word in listed[:COMMON])
    return [
        (word, name)
        for name, listed in words.items()
        for word in [word for word in listed if known_by[word] == 1][:WORDS]
    ]


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("classifiers", __doc__.splitlines()[0])
    parser.add_argument("data", choices=[*GOALS], help="What is classified.")
    parser.add_argument("--folds", type=harness.count, default=FOLDS, help="Folds. Default: 5.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
