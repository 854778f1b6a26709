"""Maps that make scores probabilities, beside a temperature: calibration error of other texts.

    python -m benchmarks.calibration_maps RUN FILE

RUN is a run of `seqkeras train classification`, whose held-out texts choose a map of its logits;
FILE has texts that chose nothing, in the form of the run's file. The rows are of FILE, then the
means over random splits of both together, of the same sizes. Ours is the temperature. The error
that scores have which are probabilities, by chance, is printed.

    isotonic    isotonic regression of the best score at the temperature
    sigmoid     Platt's sigmoid of the logit of that score
    ensemble    softmax at the temperature, at 1, and the uniform one, weighted (Zhang et al. 2020)
    biases      a temperature and a bias for each label, of few labels; answers change
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from benchmarks import harness
from seqkeras import files
from seqkeras.metrics import expected_calibration_error, fitted_temperature
from seqkeras.metrics.calibration import log_softmax
from seqkeras.quiet import import_tensorflow
from seqkeras.runs import MODEL, OPTIONS, RunFiles

SPLITS = 20
FEW = 10  # labels that each have a bias
DRAWN = 50  # how often right answers are drawn by the scores


def measure(options):
    """Compare the maps; returns the rows."""
    held_out, others = _drawn() if options.quick else _of_run(options)
    print(f"{len(held_out[1]):,} texts choose the maps, {len(others[1]):,} others are scored")
    errors = _errors(held_out, others)
    scores, random = _maps(held_out, others[0])["temperature"][0], np.random.default_rng(0)
    chance = [
        expected_calibration_error(scores, random.random(len(scores)) < scores)
        for _ in range(DRAWN)
    ]
    print(f"scores that are probabilities have an error of {np.mean(chance):.2%} by chance")
    both = [np.concatenate(pair) for pair in zip(held_out, others)]
    splits = [
        _errors(*_split(both, len(held_out[1]), random))
        for _ in range(1 if options.quick else SPLITS)
    ]
    means = {name: float(np.mean([split[name] for split in splits])) for name in errors}
    return [
        harness.Row(
            f"{name} vs temperature{where}",
            of["temperature"],
            error,
            "%",
            error / of["temperature"],
        )
        for where, of in (("", errors), (", splits", means))
        for name, error in of.items()
        if name != "temperature"
    ]


def _split(both, count, random):
    order = random.permutation(len(both[1]))
    return tuple(tuple(column[part] for column in both) for part in (order[:count], order[count:]))


def _errors(held_out, others):
    """Return the calibration error of each map, in percent."""
    errors = {}
    for name, (scores, answers) in _maps(held_out, others[0]).items():
        right = answers == others[1]
        errors[name] = 100 * expected_calibration_error(np.clip(scores, 0, 1), right)
    return errors


def _maps(held_out, logits):
    """Return for each map the scores and the answers that it gives logits."""
    known, targets = held_out
    n, labels = known.shape
    temperature, right = fitted_temperature(known, targets), known.argmax(axis=1) == targets
    sharp, sharp_of = (np.exp(log_softmax(rows, temperature)) for rows in (known, logits))
    plain, plain_of = (np.exp(log_softmax(rows)) for rows in (known, logits))
    even = 1 / labels
    answers, best, best_of = logits.argmax(axis=1), sharp.max(axis=1), sharp_of.max(axis=1)
    ends = {"y_min": 1 / (n + 2), "y_max": (n + 1) / (n + 2), "out_of_bounds": "clip"}
    isotonic = IsotonicRegression(**ends).fit(best, right)
    sigmoid = LogisticRegression(C=1e9).fit(_logit(best)[:, None], right)

    def weighted(weights, *parts):
        shares = np.exp(weights) / np.exp(weights).sum()
        return sum(share * part for share, part in zip(shares, parts, strict=True))

    def loss(weights):
        return -np.mean(np.log(weighted(weights, sharp, plain, even)[np.arange(n), targets]))

    weights = minimize(loss, [2.0, 0.0, -3.0], method="Nelder-Mead").x
    maps = {
        "temperature": (best_of, answers),
        "nothing": (plain_of.max(axis=1), answers),
        "isotonic": (isotonic.predict(best_of), answers),
        "sigmoid": (sigmoid.predict_proba(_logit(best_of)[:, None])[:, 1], answers),
        "ensemble": (weighted(weights, sharp_of, plain_of, even).max(axis=1), answers),
    }
    if labels <= FEW:

        def biased(found, rows):
            return log_softmax(rows * np.exp(found[0]) + found[1:])

        found = minimize(
            lambda found: -np.mean(biased(found, known)[np.arange(n), targets]),
            np.zeros(labels + 1),
        ).x
        log_probs = biased(found, logits)
        maps["biases"] = np.exp(log_probs.max(axis=1)), log_probs.argmax(axis=1)
    return maps


def _logit(scores):
    scores = np.clip(scores, 1e-9, 1 - 1e-9)
    return np.log(scores / (1 - scores))


def _drawn():
    """Return logits and targets that are drawn at a temperature of 2."""
    random = np.random.default_rng(0)
    logits = random.normal(scale=4, size=(300, 3))
    targets = (logits / 2 + random.gumbel(size=logits.shape)).argmax(axis=1)
    return (logits[:100], targets[:100]), (logits[100:], targets[100:])


def _of_run(options):
    """Return logits and targets of the held-out texts of a run, and of a file."""
    import_tensorflow()
    from seqkeras.training.answering import answerer
    from seqkeras.training.checkpoint import load_model
    from seqkeras.training.commands import parse_options
    from seqkeras.training.tasks import TASKS

    folder = options.run
    run, values = RunFiles.read(folder), files.read_json(folder / OPTIONS)
    task = parse_options("evaluate", TASKS["classification"], [], values).make()
    task.reading.known_tokenizers = run.tokenizers
    scores = files.read_json(folder / "scores.json")
    temperature = scores.get("calibration", {}).get("temperature", 1.0)  # which the model has
    model, answer = load_model(folder / MODEL, "train again", compile=False), answerer(run, {})
    held_out = [
        SimpleNamespace(text=row["input"], target=row["target"])
        for row in json.loads((folder / "validation.json").read_text(encoding="utf-8"))
    ]
    others = task.reading.examples_of([options.data], run.record.settings)
    return tuple(
        (
            temperature * np.array([row.logits for row in chances]),
            np.array([row.target for row in chances]),
        )
        for chances in (
            task.scoring.chances(
                model, examples, answer(model, [example.text for example in examples]), run
            )
            for examples in (held_out, others)
        )
    )


def main(arguments=None):
    """Measure the maps."""
    parser = harness.make_parser("calibration_maps", "Compare maps of scores with a temperature.")
    parser.add_argument("run", type=Path, nargs="?", help="Run of a classifier of texts.")
    parser.add_argument("data", nargs="?", help="File of texts that chose nothing.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
