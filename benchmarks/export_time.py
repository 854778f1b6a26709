"""The whole command `seqkeras export RUN BUNDLE`, beside the same of another checkout.

    python -m benchmarks.export_time --beside CHECKOUT RUN ... [--json FILE] [--quick]

Another checkout is made by `git worktree add ../before v0.1`. Both run in this environment, in
turn. Where the time goes is told for ours: the seconds between the lines that the command prints.
Processor time is that of all threads, user and system: other programs change it less. Memory is
the most that a process holds. docs/speed/export.md has the commands that make four runs.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import harness
from seqkeras.quiet import import_tensorflow

COMMAND = ("-u", "-m", "seqkeras", "export")
NEXT = "next: "  # the last line begins so
SHOWN = 0.05  # seconds from which a line is in the table


def measure(options):
    """Time the commands; returns the rows."""
    import_tensorflow()  # quietly, for what the machine is
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for run in options.runs:
            name = run.resolve().name
            rows += _rows_of(name, run.resolve(), Path(folder) / name, options)
    print(f"measured on {harness.machine_of_exports()}")
    return rows


def _rows_of(name, run, bundle, options):
    steps, memory, processor = [], {"ours": 0, "rival": 0}, {"ours": [], "rival": []}

    def export(who, checkout):
        def timed(number):
            lines, used, held = _export(checkout, run, bundle)
            memory[who] = max(memory[who], held)
            processor[who].append(used)
            if who == "ours":
                steps.append(lines)

        return timed

    checkouts = {"ours": harness.CHECKOUT, "rival": options.beside.resolve()}
    contenders = {who: export(who, checkout) for who, checkout in checkouts.items()}
    times = harness.times_in_turn(contenders, harness.rounds_of(options), warm_up=0)
    medians = {line: statistics.median(each.get(line, 0.0) for each in steps) for line in steps[0]}
    harness.print_table(
        [f"where the time of {name} goes", "s"],
        [[line, f"{seconds:.1f}"] for line, seconds in medians.items() if seconds >= SHOWN],
    )
    case = f"{name} vs {checkouts['rival'].name}"
    held = memory["ours"], memory["rival"]
    return [
        harness.compare_times(case, times["ours"], times["rival"], "s", scale=1, goal=2),
        harness.compare_times(
            f"{case}, processor", processor["ours"], processor["rival"], "s", scale=1, goal=2
        ),
        harness.Row(f"{case}, memory", *held, "MiB", held[1] / held[0]),
    ]


def _export(checkout, run, bundle):
    """Return line of the command -> seconds until the next one, the seconds of processor time, and
    the MiB that the process held.

    The last line is "end": what the process does after it has said what to do next.
    """
    began, line, seconds = time.perf_counter(), "start", {}
    command = [sys.executable, *COMMAND, str(run), str(bundle), "--overwrite"]
    with subprocess.Popen(
        command,
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:
        for printed in process.stdout:
            now = time.perf_counter()
            seconds[line] = seconds.get(line, 0) + now - began
            began, line = now, "end" if printed.startswith(NEXT) else printed.strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds[line] = seconds.get(line, 0) + time.perf_counter() - began
    if process.returncode:
        raise ValueError(f"{checkout.name}: {line}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("export_time", __doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="Folders of runs.")
    parser.add_argument(
        "--beside", type=Path, required=True, metavar="CHECKOUT", help="Folder of the other one."
    )
    parser.add_argument(
        "--rounds", type=harness.count, default=3, help="Exports of each kind. Default: 3."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
