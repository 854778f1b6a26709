"""Texts that have none of the labels: how many are told, at how many false alarms.

    python -m benchmarks.none_of_these BUNDLE FILE [--label-column NAME]

BUNDLE is the bundle of a run of `seqkeras train classification --none-of-these true`; FILE has
texts with a label that chose nothing. The texts without a label are the sentences of SST-2's dev
part and the first 2,000 questions of the part of SQuAD 1.1 in the folder of SEQKERAS_DATA. What is
answered null is printed. Ours is the share of them that is told at exactly 5 % false alarms on
FILE, by the score of null beside that of the best label; the rival is a threshold of the best
label's score.
"""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmarks import harness
from seqkeras import serving
from seqkeras.data.columns import read_columns

GOAL = 0.9
FALSE_ALARMS = 0.05
MOST = 2000  # texts
SMALLEST = 1e-12  # score of null that its digits tell


def measure(options):
    """Return the rows of both kinds of texts without a label."""
    known, targets, strangers = _drawn() if options.quick else _answered(options)
    alarms = np.array([answer.labels == (None,) for answer in known])
    best = np.array([next(iter(answer.scores)) for answer in known])
    right = best == np.array(targets)
    print(
        f"{len(known):,} texts with a label: null is the answer to {alarms.mean():.1%}; right are "
        f"{np.mean(right & ~alarms):.2%}, without null {right.mean():.2%}"
    )
    rows = []
    for name, answers in strangers.items():
        null = np.mean([answer.labels == (None,) for answer in answers])
        print(f"{name}: null is the answer to {null:.1%} of {len(answers):,}")
        told, rival = (
            np.mean(scores(answers) < np.quantile(scores(known), FALSE_ALARMS))
            for scores in (_beside_null, _of_labels)
        )
        case = f"{name}, null vs the best label's score"
        rows.append(harness.Row(case, 100 * told, 100 * rival, "%", told / max(rival, 0.01)))
        rows.append(
            harness.Row(f"{name}, null vs 90 %", 100 * told, 100 * GOAL, "%", told / GOAL, 1.0)
        )
    return rows


def _beside_null(answers):
    """Return by how much the score of the best label is over that of null, as a logarithm."""
    sums = np.array([sum(answer.scores.values()) for answer in answers])
    return np.log(_of_labels(answers) * sums / np.maximum(1 - sums, SMALLEST))


def _of_labels(answers):
    """Return the score of the best label among the labels alone."""
    scores = (answer.scores.values() for answer in answers)
    return np.array([max(of_labels) / sum(of_labels) for of_labels in scores])


def _answered(options):
    """Return the answers to texts with a label, their labels, and name -> answers to others."""
    data = Path(os.environ["SEQKERAS_DATA"])
    classify = serving.load(options.bundle, precision=options.precision)
    columns = [options.text_column, options.label_column]
    texts, targets = zip(*(values for _, values in read_columns(options.data, columns)))
    sentences = (data / "sst2/dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    squad = json.loads((data / "squad1-subset/train-v1.1-subset.json").read_text(encoding="utf-8"))
    strangers = {
        "SST-2's sentences": [line.split("\t")[0] for line in sentences],
        "SQuAD's questions": [
            question["question"].strip()
            for article in squad["data"]
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ][:MOST],
    }
    of_strangers = {name: classify(found, truncate=True) for name, found in strangers.items()}
    return classify([*texts], truncate=True), targets, of_strangers


def _drawn():
    """Return answers that are drawn, to texts with a label and to others."""
    draw = np.random.default_rng(0)

    def answers(count, shift):
        for a, b, none in draw.dirichlet([4, 1, shift], count).tolist():
            scores = dict(sorted({"a": a, "b": b}.items(), key=lambda item: -item[1]))
            is_none = none > max(scores.values())
            yield SimpleNamespace(labels=(None,) if is_none else (*scores,)[:1], scores=scores)

    strangers = {name: [*answers(99, 9)] for name in ("SST-2's sentences", "SQuAD's questions")}
    return [*answers(99, 1)], 99 * ["a"], strangers


def main(arguments=None):
    """Measure what is told."""
    parser = harness.make_parser("none_of_these", "Count texts without a label that are told.")
    parser.add_argument("bundle", type=Path, nargs="?", help="Bundle of a classifier of texts.")
    parser.add_argument("data", nargs="?", help="File of texts that chose nothing.")
    parser.add_argument("--text-column", default="text", help="Column of texts.")
    parser.add_argument("--label-column", default="label", help="Column of labels.")
    parser.add_argument("--precision", help="Precision of the bundle. Default: float32.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
