"""What `seqkeras train tune` gains: the default run beside the best of a study, on rows kept apart.

    python -m benchmarks.tuning [--data NAMES] [--trials N] [--search NAMES]

The last twentieth of a series, a horizon at least, and a fifth of Banking77 are kept apart. The
study sees the other rows alone, and holds a part of them out for validation; its first trial has
the default options. `benchmarks.series_baselines` names the series; SEQKERAS_DATA names the folder
of the data.
"""

import csv
import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import classifiers, harness
from benchmarks.series_baselines import SERIES, cut_of, lines_of, written
from seqkeras.quiet import import_tensorflow

BANKING77 = "banking77"
TRIALS = 12
SHORT, SMALL_BATCH = 400, 16  # lines of a file that fills no default batch of windows


def measure(options):
    """Tune on every data set; returns the rows."""
    import_tensorflow()
    names = options.data.split(",") if options.data else [*SERIES, BANKING77]
    if unknown := [name for name in names if name not in (*SERIES, BANKING77)]:
        raise ValueError(
            f"--data must be of {', '.join(SERIES)}, {BANKING77}; found {unknown[0]!r}"
        )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names[:1] if options.quick else names:
            path = Path(folder) / name
            path.mkdir()
            gain = _classifier if name == BANKING77 else _forecaster
            rows.append(gain(name, path, options))
            shutil.rmtree(path)
    return rows


def _forecaster(name, folder, options):
    """Return the row of a series: MASE of forecasts of the rows kept apart."""
    series, lines = SERIES[name], lines_of(SERIES[name], options.quick)
    values, before = cut_of(series, lines, 0, folder / "whole")
    arguments = ["--time", ",".join(series.time), "--targets", ",".join(series.targets)]
    arguments += ["--horizon", series.horizon, "--gaps", "fill"]
    if len(before) < SHORT:
        arguments += ["--batch-size", SMALL_BATCH]
    file = written(folder / "before", before)
    default, best = _tuned("forecasting", file, arguments, folder, options)
    kept = round(values["held_out"] * (len(lines) - 1))

    def mase(run):
        context = json.loads((run / "run.json").read_text())["limits"]["source_length"]
        tail = written(folder / "tail", [lines[0], *lines[-(context + kept) :]])
        return _evaluated(run, tail, folder)["mase"]

    ours, rival = mase(best), mase(default)
    return harness.Row(f"{name} tuned vs default", ours, rival, "MASE", rival / ours, 1.0)


def _classifier(name, folder, options):
    """Return the row of Banking77: right answers to the texts kept apart."""
    with open(classifiers.banking77()["file"], newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    parts = {
        "rest": [line for index, line in enumerate(lines) if index % classifiers.FOLDS],
        "kept": lines[:: classifiers.FOLDS],
    }
    for part, texts in parts.items():
        with open(folder / f"{part}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *texts])
    file, apart = (folder / f"{part}.csv" for part in parts)
    asked = ["--label-column", "category"]
    runs = _tuned("classification", file, asked, folder, options)
    rival, ours = (100 * _evaluated(run, apart, folder)["accuracy"] for run in runs)
    return harness.Row(f"{name} tuned vs default", ours, rival, "% right", ours / rival, 1.0)


def _tuned(task, file, arguments, folder, options):
    """Return the folders of the default run and of the best of a study."""
    arguments = [file, *arguments, "--baselines", "false"]
    arguments += ["--max-steps", 2] if options.quick else []
    default, study = folder / "default", folder / "study"
    _run(task, *arguments, "--out", default)
    search = ["--search", options.search] if options.search else []
    _run("tune", task, *arguments, "--trials", options.trials, *search, "--out", study)
    return default, study / "best"


def _evaluated(run, file, folder):
    """Return the scores of a run on a file."""
    out = folder / "scores.json"
    _run("evaluate", run, "--data", file, "--out", out)
    return json.loads(out.read_text(encoding="utf-8"))


def _run(*arguments):
    from seqkeras.training.__main__ import main

    if main([*map(str, arguments)]):
        raise ValueError(f"seqkeras train {' '.join(map(str, arguments))} failed")


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("tuning", __doc__.splitlines()[0])
    parser.add_argument(
        "--data", metavar="NAMES", help=f"Some of {', '.join(SERIES)}, {BANKING77}."
    )
    parser.add_argument(
        "--trials", type=harness.count, default=TRIALS, help=f"Trials. Default: {TRIALS}."
    )
    parser.add_argument(
        "--search", metavar="NAMES", help="Options to search. Default: those of the task."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
