"""Starting to serve: a sentence encoder of MiniLM's size, from nothing to its first answer.

    python -m benchmarks.startup [--rounds N] [--json FILE] [--quick]

22 million random weights, exported as `seqkeras export` does, in float32 alone and with its int8
precisions. Every figure is the median of processes of their own, files in the disk cache; the rival
is what it may cost at most. Time until the first answer begins with Python itself and ends with the
process. Memory is what is resident then, less the bytes of the graph and its weights, of which a
table of embeddings need not be resident. The 25 MB of ONNX files are those of int8-embedding: plain
int8 keeps that table in float32, and is shown beside float32.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import encoder_bundles, first_answer, harness, training_steps

IMPORT, FIRST_ANSWER = 0.3, 1.0  # seconds
BESIDE, INT8_SIZE = 120, 25  # MB
SMALLEST = "int8-embedding"
PRECISIONS = ("int8", SMALLEST)
WORDS = 8


def measure(options):
    """Export the bundles and start them; returns the rows."""
    training_steps.quiet_tensorflow()
    rounds = harness.rounds_of(options)
    with tempfile.TemporaryDirectory() as folder:
        alone, several = Path(folder, "alone"), Path(folder, "several")
        model = encoder_bundles.make_model("minilm", options.quick)
        encoder_bundles.export_model(model, alone, ())
        encoder_bundles.export_model(model, several, PRECISIONS)
        cases = [(alone, "float32"), *((several, precision) for precision in PRECISIONS)]
        rows = [row for case in cases for row in _measure_bundle(*case, rounds)]
    print(f"measured on {_machine()}; medians of {rounds} processes")
    return rows


def _measure_bundle(bundle, precision, rounds):
    text = " ".join(encoder_bundles.make_words()[:WORDS])
    steps, times = first_answer.measure(bundle, precision, text, rounds)
    total = statistics.median(times)
    first_answer.print_steps(f"minilm {precision}", steps, total)
    stored = _stored_bytes(bundle, precision)
    resident = steps[-1]["resident"]
    rows = [
        _row(f"first answer {precision}", total, FIRST_ANSWER, "s"),
        _row(f"memory beside the weights {precision}", (resident - stored) / 1e6, BESIDE, "MB"),
    ]
    if precision == "float32":
        return [_row("import serving", steps[0]["seconds"], IMPORT, "s"), *rows]
    if precision == SMALLEST:
        return [*rows, _row(f"ONNX {precision}", stored / 1e6, INT8_SIZE, "MB")]
    whole = _stored_bytes(bundle, "float32")
    case = f"minilm ONNX {precision} vs float32"
    return [*rows, harness.Row(case, stored / 1e6, whole / 1e6, "MB", whole / stored)]


def _row(name, ours, most, unit):
    return harness.Row(f"minilm {name} vs {most:g} {unit}", ours, most, unit, most / ours, goal=1)


def _stored_bytes(bundle, precision):
    """Return the size of a precision's graph and its weights."""
    from seqkeras.serving.manifest import read_manifest
    from seqkeras.serving.opening import Runtime

    graphs = Runtime(precision).graphs_of(read_manifest(bundle))
    files = {file for graph in graphs.values() for file in graph.files}
    return sum((bundle / file).stat().st_size for file in files)


def _machine():
    import onnxruntime

    from seqkeras import serving

    return harness.machine(serving=serving.__version__, onnxruntime=onnxruntime.__version__)


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("startup", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=10, help="Processes of each kind. Default: 10."
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
