"""Where a process spends its time and its memory until a bundle has answered."""

import json
import mmap
import statistics

from benchmarks import harness

FIELDS = ("seconds", "resident")  # of a step
# It imports nothing beforehand that `serving` may be the first to need.
STEPS = """
import sys, time
steps, last = [], time.perf_counter()
def step(name):
    global last
    seconds = time.perf_counter() - last
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * page
    steps.append({"name": name, "seconds": seconds, "resident": resident})
    last = time.perf_counter()
bundle, precision, text, page = *sys.argv[1:4], int(sys.argv[4])
from seqkeras import serving
step("import serving")
import numpy
step("import NumPy")
import onnxruntime
step("import onnxruntime")
import seqkeras.serving.pipelines
step("import the pipelines")
pipeline = serving.load(bundle, precision=precision)
step("open the bundle")
pipeline(text)
step("answer")
import json
print(json.dumps(steps))
"""


def measure(bundle, precision, text, rounds):
    """Start processes that answer a text, one after the other.

    Returns:
        The steps, dictionaries of "name", "seconds" and the bytes that are "resident" after it,
        medians of `rounds` processes; and how many seconds each process took in all.
    """
    arguments = ["-c", STEPS, bundle, precision, text, mmap.PAGESIZE]
    seen = []
    times = harness.times_in_turn(
        {"ours": lambda _: seen.append(json.loads(harness.run_python(*arguments)))},
        rounds,
        warm_up=1,
    )
    steps = [
        runs[0] | {field: statistics.median(one[field] for one in runs) for field in FIELDS}
        for runs in zip(*seen[1:], strict=True)
    ]
    return steps, times["ours"]


def print_steps(title, steps, total):
    """Print the steps, and what is left of the total: Python itself, and the process's end."""
    rows = [
        [step["name"], f"{step['seconds']:.3f}", f"{step['resident'] / 1e6:.0f}"] for step in steps
    ]
    rest = total - sum(step["seconds"] for step in steps)
    harness.print_table([title, "s", "MB resident"], [*rows, ["the rest", f"{rest:.3f}", ""]])
