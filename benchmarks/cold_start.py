"""From the start of `seqkeras predict` to its answer, beside what Python needs anyway.

    python -m benchmarks.cold_start BUNDLE [--json FILE] [--quick]

The limit of the machine is a process that imports NumPy and onnxruntime and ends. Files are in the
disk cache. Where the time goes is measured in processes of their own, which do the same step by
step; what is left is Python itself, the command line, and the end of the process.
"""

import statistics
import sys
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import first_answer, harness
from seqkeras import serving
from seqkeras.serving.manifest import read_manifest

GOAL = 1.0  # seconds
LIMIT = "import numpy, onnxruntime"


def measure(options):
    """Time the processes; returns the rows."""
    bundle = options.bundle.resolve()
    text = read_manifest(bundle).examples[0]
    rounds = harness.rounds_of(options)
    times = harness.times_in_turn(
        {
            "ours": lambda number: harness.run_python("-m", "serving", "predict", bundle, text),
            "limit": lambda number: harness.run_python("-c", LIMIT),
        },
        rounds,
        warm_up=1,
    )
    total = statistics.median(times["ours"])
    steps, _ = first_answer.measure(bundle, "float32", text, rounds)
    first_answer.print_steps("where the time goes", steps, total)
    print(f"measured on {_machine()}; medians of {rounds} processes, for {text!r}")
    return [
        harness.compare_times(
            f"cold start vs {LIMIT}", times["ours"], times["limit"], "s", scale=1
        ),
        harness.Row(f"cold start vs {GOAL:g} s", total, GOAL, "s", GOAL / total, goal=1),
    ]


def _machine():
    return harness.machine(
        serving=serving.__version__, onnxruntime=onnxruntime.__version__, NumPy=np.__version__
    )


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("cold_start", __doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="Folder of the bundle.")
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="Processes of each kind. Default: 20."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
