"""Time and peak memory of a training step against the length of the sequence.

    python -m benchmarks.scaling [--json FILE] [--png FILE] [--rounds N] [--quick]

Every point is a process of its own (Linux: it reads /proc). Its layer takes a few steps at a short
length first, so that everything is loaded, and is then given the length in question: one sequence,
forward and backward, with the lengths not known to the graph. Time is the least of the rounds;
memory is the most that was resident in them, less what was resident before.

The slopes are those of straight lines through the longer lengths on log-log axes: 1 for what grows
with the length, 2 for what grows with its square.
"""

import dataclasses
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import harness, scaling_figure, training_steps

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
FITTED_FROM = 512  # under it, the overhead of a call is most of its time
FEATURES, HEADS, WINDOW, KERNEL = 64, 4, 32, 3
RIVAL, OURS = "full attention", "restricted attention"
GOAL = 0.87  # of 1 / slope: a slope of 1.15 at most
SHORT = 16  # the length of the first steps


@dataclasses.dataclass(frozen=True)
class Point:
    """One layer at one length.

    Args:
        case: a key of `cases()`.
        length: T.
        seconds: of a training step.
        megabytes: of memory that it took.
    """

    case: str
    length: int
    seconds: float
    megabytes: float


def cases():
    """Return a dictionary: name -> () -> a layer of (sequences, mask=, training=) with as many
    outputs as inputs."""
    from seqkeras import recurrent
    from seqkeras.attention import RestrictedSelfAttention

    head_dim = FEATURES // HEADS
    return {
        "simplernn": lambda: recurrent.SimpleRNN(FEATURES, return_sequences=True),
        "lstm": lambda: recurrent.LSTM(FEATURES, return_sequences=True),
        "qrnn": lambda: recurrent.QRNN(FEATURES, return_sequences=True),
        "convolution": _convolution,
        RIVAL: _full_attention,
        OURS: lambda: RestrictedSelfAttention(HEADS, head_dim, window=WINDOW),
    }


def _convolution():
    import keras

    class Convolution(keras.layers.Conv1D):
        """A `Conv1D` of a sequence with a padding mask, whose padding is zeros."""

        supports_masking = True

        def call(self, sequences, mask=None, training=False):
            return super().call(keras.ops.where(mask[..., None], sequences, 0))

    return Convolution(FEATURES, KERNEL, padding="same")


def _full_attention():
    import keras

    from seqkeras.attention import MultiHeadAttention

    class FullSelfAttention(keras.layers.Layer):
        """`MultiHeadAttention` of a sequence to itself, with a padding mask."""

        supports_masking = True

        def build(self, sequences_shape):
            self.attention = MultiHeadAttention(HEADS, FEATURES // HEADS)
            self.attention.build(*[sequences_shape] * 3)

        def call(self, sequences, mask=None, training=False):
            return self.attention(sequences, sequences, sequences, mask[:, None], training=training)

    return FullSelfAttention()


def measure(options):
    """Measure every point, draw them; returns the rows."""
    lengths = (8, 16, 32) if options.quick else LENGTHS
    point = measure_point if options.quick else _point_in_a_process
    points = []
    training_steps.quiet_tensorflow()
    for case in cases():
        for length in lengths:
            points.append(point(case, length, harness.rounds_of(options)))
            told = points[-1]
            print(
                f"{case} t{length}: {told.seconds * 1000:.4g} ms, {told.megabytes:.4g} MB",
                flush=True,
            )
    slopes = slopes_of(points, lengths[0] if options.quick else FITTED_FROM)
    if options.png:
        scaling_figure.plot_scaling(points, slopes, options.png)
        print(f"figure written to {options.png}")
    told = f"one sequence, {FEATURES} features, window {WINDOW}, kernel {KERNEL}"
    print(f"measured on {training_steps.machine()}; {told}")
    return rows_of(points, slopes)


def measure_point(case, length, rounds):
    """Return one point, in this process: its memory says nothing where larger ones came before."""
    layer = cases()[case]()
    layer.build((None, None, FEATURES))
    step = training_steps.training_step(layer, None, FEATURES)
    for _ in range(2):
        step(*_batch(SHORT))
    batch, seconds = _batch(length), []
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        step(*batch)
        seconds.append(time.perf_counter() - begin)
    return Point(case, length, min(seconds[1:]), (_resident("VmHWM") - before) / 1024)


def _batch(length):
    sequences = np.random.default_rng(length).normal(size=(1, length, FEATURES))
    return sequences.astype(np.float32), np.ones((1, length), bool)


def _resident(name):
    """Return a line of this process's status, in kB."""
    return int(re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def _point_in_a_process(case, length, rounds):
    command = [sys.executable, "-m", "benchmarks.scaling", "--point", case]
    finished = subprocess.run(
        [*command, "--length", str(length), "--rounds", str(rounds)],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
    )
    if finished.returncode:
        raise ValueError(f"{case} t{length}: {finished.stderr.strip()[-500:]}")
    return Point(**json.loads(finished.stdout.splitlines()[-1]))


def slopes_of(points, shortest):
    """Return case -> (of time, of memory), the slopes from a length on; NaN where there is no
    figure."""
    slopes = {}
    for case in dict.fromkeys(point.case for point in points):
        fitted = [point for point in points if point.case == case and point.length >= shortest]
        lengths = [math.log(point.length) for point in fitted]
        slopes[case] = tuple(
            np.polyfit(lengths, [math.log(value) for value in values], 1)[0]
            if min(values) > 0
            else math.nan
            for values in (
                [point.seconds for point in fitted],
                [point.megabytes for point in fitted],
            )
        )
    return slopes


def rows_of(points, slopes):
    """Return the rows: every point beside full attention at its length, and the slopes beside 1."""
    rival = {point.length: point for point in points if point.case == RIVAL}
    rows = []
    for point in points:
        if point.case != RIVAL:
            other, label = rival[point.length], f"{point.case} t{point.length}"
            pairs = {
                "time": (point.seconds * 1000, other.seconds * 1000, "ms"),
                "memory": (point.megabytes, other.megabytes, "MB"),
            }
            rows += [
                harness.Row(f"{label} {kind} vs {RIVAL}", own, its, unit, _ratio(its, own))
                for kind, (own, its, unit) in pairs.items()
            ]
    for case, both in slopes.items():
        for kind, slope in zip(("time", "memory"), both):
            goal = GOAL if case == OURS else None
            name = f"{case} {kind}, slope vs 1"
            if not math.isnan(slope):
                rows.append(harness.Row(name, slope, 1.0, "slope", _ratio(1.0, slope), goal))
    return rows


def _ratio(above, below):
    """Return 0 where there is no figure: a step that took no memory that could be seen."""
    return above / below if below > 0 else 0.0


def main(arguments=None):
    """Run the benchmark, or one point of it; returns the exit status."""
    parser = harness.make_parser("scaling", __doc__.splitlines()[0])
    parser.add_argument("--png", type=Path, metavar="FILE", help="PNG file to draw.")
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="Timed rounds. Default: 20."
    )
    parser.add_argument("--point", metavar="CASE", help="Point to measure alone, as JSON.")
    parser.add_argument("--length", type=harness.count, help="Length at --point.")
    options = parser.parse_args(arguments)
    if options.point is None:
        return harness.run(parser, measure, arguments)
    training_steps.quiet_tensorflow()
    point = measure_point(options.point, options.length, options.rounds)
    print(json.dumps(dataclasses.asdict(point)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
