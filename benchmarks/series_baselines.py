"""Plain forecasts of eight public series, and the default model beside them: MASE of rolling cuts.

    python -m benchmarks.series_baselines [--train] [--bands] [--cuts N] [--series NAMES]

SEQKERAS_DATA names the folder of the series. A cut ends a file some rows earlier than the one
before; the last twentieth of its rows, a horizon at least, is held out, and all windows of it are
forecast. Options are --time, --targets, --horizon and --gaps fill; where a cut is too short for the
default --batch-size, it is halved. MASE is the mean over targets and cuts. With
--train the default model is trained on each cut, and ours; without it ours is the best forecast
that learns, and the rival the better naive one. With --bands the default model with three
--quantiles is trained on the rows before those of a cut that are held out; the share of these that
lies in its bands is told.
"""

import dataclasses
import datetime
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

SHARE = 0.05  # of the rows, held out of a cut
HALVED = (1, 2, 4, 8, 16)
GOAL = 1.0
QUANTILES = (0.1, 0.5, 0.9)


class Series(NamedTuple):
    """A file of the folder, its columns, and how far it is forecast."""

    path: str
    time: tuple
    targets: tuple
    horizon: int


DATE = ("date",)
HOURS = ("year", "month", "day", "hour")
SERIES = {
    "co2": Series("series/co2-weekly.csv", DATE, ("co2",), 12),
    "elnino": Series("series/elnino-monthly.csv", DATE, ("temperature",), 12),
    "sunspots": Series("series/sunspots-yearly.csv", DATE, ("sunspots",), 5),
    "macro": Series("series/macro-quarterly.csv", DATE, ("realgdp", "cpi"), 4),
    "weather": Series("series/seattle-weather-daily.csv", DATE, ("temp_max",), 28),
    "temperature": Series("series/seattle-temps-hourly.csv", DATE, ("temp",), 24),
    "employment": Series("series/us-employment-monthly.csv", DATE, ("nonfarm",), 12),
    "pm2.5": Series("pm25-beijing/PRSA_data_2010.1.1-2014.12.31.csv", HOURS, ("pm2.5",), 24),
}


def measure(options):
    """Forecast every cut of every series; returns the rows."""
    import_tensorflow()
    names = options.series.split(",") if options.series else [*SERIES]
    if unknown := [name for name in names if name not in SERIES]:
        raise ValueError(f"--series must be of {', '.join(SERIES)}; received {unknown[0]!r}")
    table, rows, shares = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in names[:1] if options.quick else names:
            series, lines = SERIES[name], lines_of(SERIES[name], options.quick)
            cuts = [
                _forecasts(series, lines, cut, Path(folder) / f"{name}-{cut}", options)
                for cut in range(1 if options.quick else options.cuts)
            ]
            methods = [method for method in cuts[0] if all(method in scores for scores in cuts)]
            mase = {
                method: sum(scores[method] for scores in cuts) / len(cuts) for method in methods
            }
            table.append((name, mase))
            rows.append(_row(name, mase, options.train))
            if options.bands:
                held = [
                    _in_bands(series, lines, cut, Path(folder) / f"{name}-bands-{cut}", options)
                    for cut in range(1 if options.quick else options.cuts)
                ]
                shares.append((name, held))
    methods = [*dict.fromkeys(method for _, mase in table for method in mase)]
    shown = [
        [name, *(f"{mase[method]:.3f}" if method in mase else "-" for method in methods)]
        for name, mase in table
    ]
    harness.print_table(["MASE", *methods], shown)
    if shares:
        _print_shares(shares)
    return rows


def _print_shares(shares):
    """Print the share of values in bands, by series and of all, and of each cut."""
    everything = [share for _, of_series in shares for share in of_series]
    shown = []
    for name, of_series in [*shares, ("all", everything)]:
        inside, known = (sum(numbers) for numbers in zip(*of_series))
        of_cuts = " ".join(f"{part / count:.1%}" for part, count in of_series if count)
        shown.append([name, f"{inside / known:.1%}", "" if name == "all" else of_cuts])
    harness.print_table([f"in bands of {QUANTILES[-1] - QUANTILES[0]:.0%}", "", "cuts"], shown)


def _row(name, mase, trained):
    naive = ("persistence", "seasonal naive")
    ours = "model" if trained else min((m for m in mase if m not in naive), key=mase.__getitem__)
    rivals = [method for method in mase if method != ours and (trained or method in naive)]
    rival = min(rivals, key=mase.__getitem__)
    case, ratio = f"{name} {ours} vs {rival}", mase[rival] / mase[ours]
    return harness.Row(case, mase[ours], mase[rival], "MASE", ratio, GOAL)


def lines_of(series, quick):
    """Return the lines of a file; of a smoke run made ones."""
    if quick:
        first = datetime.date(1990, 1, 6)
        weeks = (first + datetime.timedelta(weeks=n) for n in range(300))
        waves = (math.sin(n / 8) + n / 99 + n * n % 13 / 20 for n in range(300))
        return ["date,co2\n", *(f"{week},{wave}\n" for week, wave in zip(weeks, waves))]
    path = Path(os.environ.get("SEQKERAS_DATA", "")) / series.path
    if not path.is_file():
        raise ValueError(f"{path}: no such file; SEQKERAS_DATA names the folder of the series")
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def _forecasts(series, lines, cut, path, options):
    """Return name -> MASE of the forecasts of one cut."""
    values, _ = cut_of(series, lines, cut, path)
    task, train, validation = _read(values)
    if options.train:
        return _trained(task.options, path, options.quick)
    return _plain(task, train, validation)


def cut_of(series, lines, cut, path):
    """Return options of a cut, whose file is written, and the lines before what is held out."""
    header, *rows = lines
    held_out = max(series.horizon, round(SHARE * len(rows)))
    rows = rows[: len(rows) - cut * held_out]
    values = {
        "file": written(path, [header, *rows]),
        "time": series.time,
        "targets": series.targets,
        "horizon": series.horizon,
        "gaps": "fill",
        "held_out": held_out / len(rows),
    }
    return values, [header, *rows[:-held_out]]


def written(path, lines):
    """Return the path of a .csv file with these lines."""
    path.with_suffix(".csv").write_text("".join(lines), encoding="utf-8")
    return str(path.with_suffix(".csv"))


def _in_bands(series, lines, cut, path, options):
    """Return how many held out values of a cut lie in the bands of a model that never saw them, of
    all windows, and how many there are; none where the rows before are too few to train on."""
    import numpy as np
    from keras.models import load_model

    from seqkeras.metrics import coverage
    from seqkeras.runs import MODEL, RunFiles
    from seqkeras.training.answering import answerer

    values, before = cut_of(series, lines, cut, path)
    values |= {"quantiles": QUANTILES, "baselines": False}
    _, _, windows = _read(values)
    shorter = {**values, "file": written(path.with_name(f"{path.name}-before"), before)}
    try:
        task, *_ = _read(shorter | {"held_out": None})
    except ValueError:
        return 0, 0
    _train(task.options, path, options.quick)
    model = load_model(path / MODEL, compile=False)
    answers = answerer(RunFiles.read(path))(model, [window.text for window in windows])
    low, _, high = (np.stack([each.quantiles[q] for each in answers]) for q in QUANTILES)
    targets = np.stack([window.target for window in windows])
    known = int((~np.isnan(targets)).sum())
    return round(known * coverage(low, high, targets)), known


def _read(values):
    """Return a task whose options fit a file, its windows of training, and of validation."""
    from seqkeras.runs import RunError
    from seqkeras.training.tasks.forecasting import ForecastingOptions

    default = ForecastingOptions()
    for parts in HALVED:
        batch_size = max(default.batch_size // parts, 2)
        task = ForecastingOptions(**values, batch_size=batch_size).make()
        try:
            return task, *task.reading.read()
        except RunError as error:
            reason = error
    raise ValueError(str(reason))


def _plain(task, train, validation):
    import numpy as np

    from seqkeras.training.parts.baselines.forecasts import forecasts
    from seqkeras.training.parts.forecasting_scores import forecast_errors

    targets = np.stack([window.target for window in validation])
    scales = np.array([task.reading.naive_errors[window.series.name] for window in validation])
    found, _ = forecasts(validation, task.options, train)
    return {
        method: forecast_errors(values, targets, scales)["mase"] for method, values in found.items()
    }


def _train(options, folder, quick):
    from seqkeras.training.train import train

    if quick:
        options = dataclasses.replace(options, max_steps=2)
    train(options.make(), folder)


def _trained(options, folder, quick):
    _train(options, folder, quick)
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    return {method: errors["mase"] for method, errors in scores["forecasts"].items()}


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("series_baselines", __doc__.splitlines()[0])
    parser.add_argument("--train", action="store_true", help="Train the default model, too.")
    parser.add_argument("--bands", action="store_true", help="Train models with bands, too.")
    parser.add_argument("--cuts", type=harness.count, default=5, help="Rolling cuts. Default: 5.")
    parser.add_argument("--series", metavar="NAMES", help=f"Some of {', '.join(SERIES)}.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
