"""A training command that keeps freed memory, beside one that gives it back to the system.

    python -m benchmarks.kept_memory [--rounds N] [--json FILE] [--quick] -- TASK ARGUMENT ...

TASK and its ARGUMENTs are those of `seqkeras train`, without --out: a training of some hundred
steps, which is run from the start in each round. The figures are the rates of the last steps in
history.csv. The rival has glibc's default number of arenas in MALLOC_ARENA_MAX, with which
`seqkeras.memory.keep_freed_memory` changes nothing.
"""

import os
import sys
import tempfile
from pathlib import Path

from benchmarks import harness

RATE = "tokens_per_second"
ARENAS = 8 * (os.cpu_count() or 1)  # glibc's default in 64 bits
QUICK = ["--max-steps", "2"]


def measure(options):
    """Train both ways in turn; returns the row."""
    rates = {"ours": [], "given back": []}
    harness.times_in_turn(
        {
            "ours": lambda _: rates["ours"].append(_rate(options)),
            "given back": lambda _: rates["given back"].append(
                _rate(options, MALLOC_ARENA_MAX=str(ARENAS))
            ),
        },
        harness.rounds_of(options),
        warm_up=0,
    )
    times = {name: [1 / rate for rate in found] for name, found in rates.items()}
    case = f"{options.training[0]}, kept vs given back"
    amounts = [1] * len(times["ours"])
    return [harness.compare_rates(case, amounts, times, "given back", "tokens/s")]


def _rate(options, **variables):
    """Return tokens a second of the last steps of a training, under variables of the
    environment."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ["-m", "training", *options.training, *(QUICK if options.quick else [])]
        harness.run_python(*command, "--out", out, variables=variables)
        last = harness.last_step(out)
    if RATE not in last:
        raise ValueError(f"{options.training[0]}: its history.csv has no {RATE}; choose another.")
    return float(last[RATE])


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("kept_memory", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=3, help="Trainings of each. Default: 3."
    )
    parser.add_argument("training", nargs="+", help="Task and its arguments, behind --.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
