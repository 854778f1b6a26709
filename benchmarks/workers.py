"""Tokens/s of a training by two workers beside one, on one machine (Linux).

    python -m benchmarks.workers TEXT [--rounds N] [--json FILE] [--quick]

The command of `training/recipes/shakespeare-gpt.toml` with batches of several sizes. Each worker is
a process with one core of its own, and they reach each other through loopback: two have twice the
computing of one, and pay for the sum of the gradients, as on two machines with a fast network. All
of one case train on the same batches. A ratio of 2 would be a sum that costs nothing.

Tokens/s are those of `history.csv` behind its first checkpoint, until which the step is traced.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import harness, training_steps

RECIPE = harness.CHECKOUT / "training/recipes/shakespeare-gpt.toml"
BATCH_SIZES = (12, 48, 192)
STEPS = 20  # between two checkpoints, of which there are three
SMALL = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "context": 5}


def measure(options):
    """Train with one and with two workers, in turn; returns the rows."""
    training_steps.quiet_tensorflow()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        raise ValueError("two workers need two cores; this process has one.")
    rows = []
    for batch_size in BATCH_SIZES[:1] if options.quick else BATCH_SIZES:
        rates = {1: [], 2: []}
        for number in range(harness.rounds_of(options)):
            for num_workers in sorted(rates, reverse=number % 2):
                rates[num_workers].append(_rate(options, batch_size, cores[:num_workers]))
        ratio = statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True))
        one, two = (statistics.median(rates[number]) for number in (1, 2))
        case = f"2 workers vs 1, batch {batch_size}"
        rows.append(harness.Row(case, two, one, "tokens/s", ratio))
    rounds = harness.rounds_of(options)
    print(f"measured on {training_steps.machine()}; medians of {rounds} trainings of each")
    return rows


def _rate(options, batch_size, cores):
    """Return tokens/s of a training by a worker on each core."""
    steps = 1 if options.quick else STEPS
    given = {"batch_size": batch_size, "max_steps": 3 * steps, "steps_per_save": steps, "looks": 1}
    given |= {"tensorboard": "false"} | (SMALL if options.quick else {})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = ["-m", "training", "language-model", options.text.resolve(), "--config", RECIPE]
        command += ["--out", out, *harness.as_options(given)]
        workers = [
            _worker(command, core, environment)
            for core, environment in zip(cores, _environments(len(cores)), strict=True)
        ]
        try:
            _wait(workers)
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate()
        with open(out / "history.csv", encoding="utf-8", newline="") as file:
            _, *rows = csv.DictReader(file)
    return statistics.median(float(row["tokens_per_second"]) for row in rows)


def _worker(command, core, environment):
    """Return the started process of the command, on one core."""
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=harness.CHECKOUT,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )


def _environments(number):
    """Return what the environment of each worker has beside this process's own."""
    if number == 1:
        return [{}]
    cluster = {"worker": [f"localhost:{port}" for port in harness.free_ports(number)]}
    tasks = ({"type": "worker", "index": index} for index in range(number))
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


def _wait(workers):
    """Wait until all have ended.

    Raises:
        ValueError: if one fails; the last line of its error.
    """
    while any(worker.poll() is None for worker in workers):
        time.sleep(0.05)
        for worker in workers:
            if worker.poll():
                last = harness.last_line(worker.stderr.read())
                raise ValueError(last or f"a worker ended with exit status {worker.returncode}")


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("workers", __doc__.splitlines()[0])
    parser.add_argument("text", type=harness.file, help="Text file, plain or .gz.")
    parser.add_argument(
        "--rounds", type=harness.count, default=3, help="Trainings of each. Default: 3."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
