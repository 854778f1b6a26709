"""How near the machine's limit encoders and generation run.

    python -m benchmarks.limit [--only minilm|bert-base|transformer] [--processor-time] [--profile]
        [--json FILE]

The limit of a case is that of `benchmarks.roofline`: what must be multiplied and read, at this
machine's best rates. Each round measures the case, the rate of matrix products, in float32 and on
whole numbers, at the shape where onnxruntime is fastest (on whole numbers by the machine's fastest
kernel, even where bundles need another one to be exact), and the rate of reading as many bytes as
the case has weights; the ratio is the median of the rounds' fractions of the limit. With --profile,
cases below the goal tell which nodes take their time. With --processor-time the seconds are those
of both cores, user and system, in which other programs on the machine do not count; a core that
waits for the other one does not count either. Two threads each; the cases are those of
`benchmarks.encoders`, but with nothing padded (each of 8 rows has 128 tokens), and of
`benchmarks.generation`, whose limit is that of one batch, even where it is split.
"""

import collections
import dataclasses
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import encoder_bundles, encoders, generation, harness, roofline, training_steps

GOAL = 0.7
PRECISIONS = ("float32", "int8")
FAMILIES = (*encoder_bundles.SIZES, "transformer")
NODES = 6  # of a profile, those that take most


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, and one thing that it is asked.

    Args:
        name: in the table.
        precision: of the bundle.
        passes: lists of `roofline.Work`.
        open: takes a `seqkeras.serving.opening.Runtime`; returns the function that is timed.
    """

    name: str
    precision: str
    passes: list
    open: Callable


def measure(options):
    """Export, time and profile the cases; returns the rows."""
    training_steps.quiet_tensorflow()
    rounds = harness.rounds_of(options)
    clock = time.process_time if options.processor_time else time.perf_counter
    multipliers = {dtype: _fastest(dtype, options.quick, clock) for dtype in PRECISIONS}
    rows = []
    for family in FAMILIES:
        if options.only in (None, family):
            with tempfile.TemporaryDirectory() as folder:
                for case in _cases(family, Path(folder), options.quick):
                    rows.append(_row(case, multipliers, rounds, clock))
                    if options.profile and rows[-1].verdict == "MISSED":
                        _print_profile(case, Path(folder))
    seconds = ", processor time" if options.processor_time else ""
    print(f"measured on {harness.machine()}, {roofline.THREADS} threads; {rounds} rounds{seconds}")
    return rows


def _fastest(dtype, quick, clock):
    """Return the `Multiplier` of the best shape."""
    best = 0
    for shape in roofline.QUICK_SHAPES if quick else roofline.SHAPES:
        multiplier = roofline.Multiplier(dtype, shape)
        times = harness.times_in_turn({"ours": multiplier}, 5, clock=clock)["ours"]
        rate = multiplier.operations / statistics.median(times)
        if rate > best:
            best, fastest, chosen = rate, multiplier, shape
    print(f"{dtype} products: {best / 1e9:.0f} G operations/s at {' × '.join(map(str, chosen))}")
    if dtype == "int8":
        exact = roofline.Multiplier(dtype, chosen, as_served=True)
        times = harness.times_in_turn({"fastest": fastest, "served": exact}, 5, clock=clock)
        rates = [fastest.operations / statistics.median(own) / 1e9 for own in times.values()]
        print(f"  in turn, fastest {rates[0]:.0f} and as served {rates[1]:.0f} G operations/s")
    return fastest


def _cases(family, folder, quick):
    """Yield the `Case`s of a family, exported into a folder."""
    if family == "transformer":
        yield from _generation_cases(folder, quick)
    else:
        yield from _encoder_cases(family, folder, quick)


def _encoder_cases(name, folder, quick):
    model = encoder_bundles.make_model(name, quick)
    bundle = folder / "bundle"
    encoder_bundles.export_model(model, bundle, PRECISIONS[1:])
    vocab_size = model.encoder.config["vocab_size"]
    sizes = encoder_bundles.QUICK if quick else encoder_bundles.SIZES[name]
    del model
    for precision in PRECISIONS:
        for batch_size, length in encoders.QUICK_SHAPES if quick else encoders.SHAPES:
            inputs = encoders.draw_inputs(vocab_size, np.full(batch_size, length))
            yield Case(
                f"{name} {precision} b{batch_size} t{length}",
                precision,
                [roofline.encoder(sizes, batch_size, length, precision)],
                lambda runtime, inputs=inputs: _encoder_run(bundle, runtime, inputs),
            )


def _encoder_run(bundle, runtime, inputs):
    session = encoders.open_graph(bundle, runtime)
    return lambda _: session.run(None, inputs)


def _generation_cases(folder, quick):
    model, table = generation.make_model(quick)
    texts = generation.make_texts(table)
    generation.export_model(model, table, texts, PRECISIONS, folder)
    sizes = generation.QUICK if quick else generation.SIZES
    lengths = generation.SOURCE, generation.TARGET
    del model
    for precision in PRECISIONS:
        for num_beams in generation.NUM_BEAMS:
            for batch_size in generation.BATCH_SIZES[: 1 if quick else None]:
                yield Case(
                    f"transformer {precision} beam {num_beams} b{batch_size}",
                    precision,
                    roofline.generation(
                        sizes, len(table), batch_size, num_beams, *lengths, precision
                    ),
                    lambda runtime, some=texts[:batch_size], num_beams=num_beams: _generation_run(
                        folder / "bundle", runtime, some, num_beams
                    ),
                )


def _generation_run(bundle, runtime, texts, num_beams):
    from seqkeras.serving.manifest import read_manifest
    from seqkeras.serving.pipelines import Translate

    translate = Translate(bundle, read_manifest(bundle), runtime)
    return lambda _: translate(texts, num_beams=num_beams)


def _row(case, multipliers, rounds, clock):
    """Return the case beside its limit, by the rates of the same rounds."""
    from seqkeras.serving.opening import Runtime

    working_set = roofline.working_set(case.passes)
    reader = roofline.Reader(working_set)
    contenders = {"ours": case.open(Runtime(case.precision, roofline.THREADS)), "read": reader}
    times = harness.times_in_turn(contenders | multipliers, rounds, warm_up=1, clock=clock)
    limits = [
        roofline.limit(
            case.passes,
            {
                dtype: multiplier.operations / times[dtype][number]
                for dtype, multiplier in multipliers.items()
            },
            reader.size / times["read"][number],
        )
        for number in range(rounds)
    ]
    read_rate = reader.size / statistics.median(times["read"]) / 1e9
    print(
        f"{case.name}: {working_set / 1e6:.0f} MB a pass, at {read_rate:.1f} GB/s; products "
        f"{sum(w.count * w.operations for products in case.passes for w in products) / 1e9:.1f} G",
        flush=True,
    )
    return harness.compare_times(
        f"{case.name} vs the limit", times["ours"], limits, "ms", 1000, GOAL
    )


def _print_profile(case, folder):
    """Print which nodes take the time of a case, of a run after one that warms up."""
    from seqkeras.serving.opening import Runtime

    class Profiled(Runtime):
        def session_options(self):
            options = super().session_options()
            options.enable_profiling = True
            options.profile_file_prefix = str(folder / "profile")
            return options

    run = case.open(Profiled(case.precision, roofline.THREADS))
    [wall] = harness.times_in_turn({"ours": run}, 1, warm_up=1)["ours"]
    del run
    gc.collect()  # a session writes its profile when it ends
    seconds, counts = collections.Counter(), collections.Counter()
    for path in folder.glob("profile*.json"):
        for event in _warm_nodes(json.loads(path.read_text())):
            name = event["args"]["op_name"]
            seconds[name] += event["dur"] / 1e6
            counts[name] += 1
        path.unlink()
    seconds["outside the nodes"] = max(wall - seconds.total(), 0)
    harness.print_table(
        [case.name, "nodes run", "of the time"],
        [
            [name, f"{counts[name] or ''}", f"{part / seconds.total():.0%}"]
            for name, part in seconds.most_common(NODES)
        ],
    )


def _warm_nodes(profile):
    """Return the nodes that a session ran in the second of two equal runs."""
    nodes = [
        event
        for event in profile
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
    ]
    nodes.sort(key=lambda event: event["ts"])
    return nodes[len(nodes) // 2 :]


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("limit", __doc__.splitlines()[0])
    parser.add_argument("--rounds", type=harness.count, default=3, help="Timed rounds. Default: 3.")
    parser.add_argument("--only", choices=FAMILIES, help="Model to measure alone.")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="Compare processor time, on a machine where other programs run.",
    )
    parser.add_argument(
        "--profile", action="store_true", help="Print the slowest nodes where the limit is missed."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
