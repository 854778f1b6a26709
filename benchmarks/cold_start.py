"""From the start of `python -m serving predict` to its answer, beside what Python needs anyway.

    python -m benchmarks.cold_start BUNDLE [--json FILE] [--quick]

The limit of the machine is a process that imports NumPy and onnxruntime and ends. Files are in the
disk cache. Where the time goes is measured in processes of their own, which do the same step by
step; what is left is Python itself, the command line, and the end of the process.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime

import serving
from benchmarks import harness
from serving.manifest import read_manifest

CHECKOUT = Path(__file__).resolve().parents[1]
GOAL = 1.0  # seconds
LIMIT = "import numpy, onnxruntime"
STEPS = """
import json, sys, time
times, last = {}, time.perf_counter()
def step(name):
    global last
    now = time.perf_counter()
    times[name], last = now - last, now
import numpy
step("import NumPy")
import onnxruntime
step("import onnxruntime")
import serving.__main__, serving.pipelines
step("import serving")
pipeline = serving.load(sys.argv[1])
step("open the bundle")
pipeline(sys.argv[2])
step("answer")
print(json.dumps(times))
"""


def measure(options):
    """Time the processes; returns the rows."""
    bundle = options.bundle.resolve()
    text = read_manifest(bundle).examples[0]
    rounds = 1 if options.quick else options.rounds
    times = harness.times_in_turn(
        {
            "ours": lambda number: _python("-m", "serving", "predict", bundle, text),
            "limit": lambda number: _python("-c", LIMIT),
        },
        rounds,
        warm_up=1,
    )
    steps = [json.loads(_python("-c", STEPS, bundle, text)) for _ in range(rounds)]
    total = statistics.median(times["ours"])
    parts = {name: statistics.median(each[name] for each in steps) for name in steps[0]}
    parts["the rest"] = total - sum(parts.values())
    harness.print_table(
        ["where the time goes", "s"], [[name, f"{part:.3f}"] for name, part in parts.items()]
    )
    print(f"measured on {_machine()}; medians of {rounds} processes, for {text!r}")
    return [
        harness.compare_times(
            f"cold start vs {LIMIT}", times["ours"], times["limit"], "s", scale=1
        ),
        harness.Row(f"cold start vs {GOAL:g} s", total, GOAL, "s", GOAL / total, goal=1),
    ]


def _python(*arguments):
    """What a process of this interpreter prints, run in the checkout."""
    finished = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=CHECKOUT, capture_output=True, encoding="utf-8"
    )
    if finished.returncode:
        raise ValueError(finished.stderr.strip() or f"exit status {finished.returncode}")
    return finished.stdout


def _machine():
    return harness.machine(
        serving=serving.__version__, onnxruntime=onnxruntime.__version__, NumPy=np.__version__
    )


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("cold_start", __doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="the bundle's folder")
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="processes of each kind; 20"
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
