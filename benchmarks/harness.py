"""What the benchmarks share: times taken in turn, a table of ratios, the same rows as JSON."""

import argparse
import contextlib
import csv
import dataclasses
import importlib
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
WARM_UP = 3  # rounds that are not timed
OFTEN = 5  # times as many rounds of a case that takes little time
ROUNDS_HELP = f"Timed rounds, {OFTEN} times as many of short cases. Default: {{}}."
REQUIREMENTS = "benchmarks/requirements.txt"
OPTIMUM = (
    "benchmarks/requirements-optimum.txt in an environment of its own, whose interpreter "
    "--optimum PYTHON names"
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison.

    Args:
        case: names model, sizes and rival: `lstm b8 t128 vs keras`.
        ours, rival: the two figures.
        unit: of both.
        ratio: over 1 if we are ahead.
        goal: the ratio wanted, or None; it is printed, not written.
    """

    case: str
    ours: float
    rival: float
    unit: str
    ratio: float
    goal: float | None = None

    @property
    def verdict(self):
        """Whether the goal is met, in words; empty without a goal."""
        if self.goal is None:
            return ""
        return "met" if self.ratio >= self.goal else "MISSED"


def rounds_of(options, short=False):
    """Return how many rounds are timed: one of a smoke run, and more of a case that takes little
    time.

    Args:
        options: of the command line; `quick` and `rounds` are read.
        short: whether the case is one of which single times scatter.
    """
    if options.quick:
        return 1
    return options.rounds * (OFTEN if short else 1)


def rounds_told(options):
    """Return the numbers of rounds in words, for benchmarks that have short cases."""
    return f"{rounds_of(options)} rounds, {rounds_of(options, short=True)} of short cases"


def times_in_turn(contenders, rounds, warm_up=WARM_UP, clock=time.perf_counter):
    """Time functions in turn, so that what else the machine does meets all of them.

    Args:
        contenders: a dictionary of functions that take the number of the round, from 0.
        rounds: how often each is called. Every second round goes backwards, so that nobody always
            follows the same one.
        warm_up: rounds before these, with negative numbers, that do not count.
        clock: a function without arguments that tells the seconds.

    Returns:
        A dictionary of lists of seconds, one for each round.
    """
    times = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(-warm_up, rounds):
        for name in names if number % 2 == 0 else reversed(names):
            begin = clock()
            contenders[name](number)
            elapsed = clock() - begin
            if number >= 0:
                times[name].append(elapsed)
    return times


def compare_times(case, ours, rival, unit, scale, goal=None):
    """Return the row of two lists of seconds taken in turn: medians, and the median of the ratios.

    Args:
        case, unit, goal: as in `Row`.
        ours, rival: seconds, round by round.
        scale: how many of the unit are a second.
    """
    ratio = statistics.median(theirs / own for own, theirs in zip(ours, rival, strict=True))
    return Row(
        case, statistics.median(ours) * scale, statistics.median(rival) * scale, unit, ratio, goal
    )


def compare_rates(case, amounts, times, rival, unit, goal=None):
    """Return the row of ours and a rival's work a second: medians of the rounds.

    Args:
        case, unit, goal: as in `Row`.
        amounts: the work of each round.
        times: of `times_in_turn`; our own are those of `ours`.
        rival: the name of its times.
    """
    rates = {
        name: [amount / seconds for amount, seconds in zip(amounts, times[name], strict=True)]
        for name in ("ours", rival)
    }
    pairs = zip(times["ours"], times[rival], strict=True)
    ratio = statistics.median(other / own for own, other in pairs)
    return Row(case, *map(statistics.median, rates.values()), unit, ratio, goal)


def run_python(*arguments, python=sys.executable, variables=None):
    """Return what a process of Python prints, run in the checkout.

    Args:
        arguments: of its command line.
        python: the interpreter; this one.
        variables: a dictionary of the environment's that are set beside its own.

    Raises:
        ValueError: if it fails; its name and the last line of its error.
    """
    return run_program(python, *arguments, variables=variables)


def run_program(*command, given=None, variables=None):
    """Return what a program prints, run in the checkout.

    Args:
        command: its path or name, and arguments.
        given: text of its standard input.
        variables: see `run_python`.

    Raises:
        ValueError: if it fails; its name and the last line of its error.
    """
    finished = subprocess.run(
        [*map(str, command)],
        cwd=CHECKOUT,
        env=os.environ | (variables or {}),
        input=given,
        capture_output=True,
        encoding="utf-8",
    )
    if finished.returncode:
        reason = last_line(finished.stderr) or f"exit status {finished.returncode}"
        raise ValueError(f"{Path(command[0]).name}: {reason}")
    return finished.stdout


def last_step(run):
    """Return the row of the last step in the history.csv of a run's folder: a dictionary of
    strings."""
    with open(Path(run) / "history.csv", encoding="utf-8", newline="") as file:
        *_, last = csv.DictReader(file)
    return last


def last_line(written):
    """Return the last line of what a process wrote to standard error; empty if it wrote nothing."""
    return "".join(written.strip().splitlines()[-1:])


def as_options(values):
    """Return the arguments of a command line for options by their names in Python."""
    pairs = ((f"--{name.replace('_', '-')}", str(value)) for name, value in values.items())
    return [argument for pair in pairs for argument in pair]


def free_ports(count):
    """Return so many ports of loopback that nobody listens to at this moment."""
    with contextlib.ExitStack() as opened:
        listeners = [opened.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]


def import_rival(name, requirements=REQUIREMENTS):
    """Import a package that no requirements but those of the benchmarks install.

    Args:
        name: of the module.
        requirements: what installs it: a file of the checkout, and where, if not here.

    Raises:
        ImportError: if it is not there; it says how to get it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed; pip install -r {requirements}") from error


def count(text):
    """Return a whole number of at least 1, for the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1; received {text!r}")
    return int(text)


def file(text):
    """Return the path of a file that is there, for the command line."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is no file")
    return path


def recipe_of(path):
    """Return the task and the options of a recipe, by name, without its scores."""
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: value for name, value in values.items() if name != "scores"}


def make_parser(module, description):
    """Return the parser of a benchmark, with the options that all of them have."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="File to write the rows to.")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="Run everything once and small; the figures say nothing.",
    )
    return parser


def run(parser, measure, arguments=None):
    """Measure, print the table and write the rows.

    Args:
        parser: as `make_parser` returns it, with the benchmark's own arguments.
        measure: takes the options, returns a list of `Row`.
        arguments: of the command line; None: the process's own.

    Returns:
        The exit status: 0, or 1 if something could not be measured, whatever the figures are.
    """
    options = parser.parse_args(arguments)
    try:
        rows = measure(options)
        if options.json:
            write_json(options.json, rows)
    except (ImportError, OSError, ValueError) as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print_table(
        ["case", "ours", "rival", "unit", "ratio", "goal", ""],
        [
            [
                row.case,
                f"{row.ours:.4g}",
                f"{row.rival:.4g}",
                row.unit,
                f"{row.ratio:.3f}",
                "" if row.goal is None else f"{row.goal:.3f}",
                "" if options.quick else row.verdict,
            ]
            for row in rows
        ],
    )
    print(_last_line(rows, options))
    return 0


def write_json(path, rows):
    """Write the rows as a JSON list, without their goals."""
    names = [field.name for field in dataclasses.fields(Row) if field.name != "goal"]
    content = [{name: getattr(row, name) for name in names} for row in rows]
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def print_table(header, rows):
    """Print rows of strings in columns, the first flush left and the others flush right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        first, *others = (cell.ljust(width) for cell, width in zip(row[:1], widths))
        others = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join([first, *others]).rstrip())


def machine(**versions):
    """Return what the figures were measured on, and with which versions of whom, in words."""
    parts = [f"{name} {version}" for name, version in versions.items()]
    python = f"Python {platform.python_version()}"
    return ", ".join([*parts, python, platform.machine(), f"{os.cpu_count()} cores"])


def machine_of_exports():
    """Return `machine` with the versions of what exports a model and runs the graph."""
    modules = map(importlib.import_module, ("onnxruntime", "tensorflow", "keras"))
    names = ("onnxruntime", "TensorFlow", "Keras")
    return machine(**{name: module.__version__ for name, module in zip(names, modules)})


def _last_line(rows, options):
    written = f"; rows written to {options.json}" if options.json else ""
    if options.quick:
        return f"quick: everything ran; these figures say nothing{written}"
    verdicts = [row.verdict for row in rows if row.verdict]
    return f"{verdicts.count('met')} of {len(verdicts)} goals met{written}"
