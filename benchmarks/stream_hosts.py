"""A frame of a stream on every host, for models of each kind.

    python -m benchmarks.stream_hosts [--json FILE] [--quick] [--cpp HEADERS] [--frames N]

Each model is exported with --stream and answers the same frames, one by one, in Python (float32 and
int8), in Node (stream_loop.mjs), with --cpp in C++ (stream_loop.cpp), and by the SavedModel's
signature `stream` in TensorFlow. A row compares a host with Python. The table before them has for
each model the bytes of its state, microseconds a frame by host, and the largest difference of a
host's score from the model's in Keras over the whole recording. With --frames, the first model
answers so many frames in Python, and a table has its time and the memory of the process after each
tenth of them.
"""

import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import harness, streams
from seqkeras import serving
from seqkeras.quiet import import_tensorflow

FEATURES, UNITS, FRAMES = 16, 128, 500
HEADS, REACH = 4, 16  # of the Transformer: frames that it sees
LOOP = harness.CHECKOUT / "benchmarks/stream_loop.mjs"
PACKAGE = harness.CHECKOUT / "serving/javascript"


def measure(options):
    """Export the models, and run each host; returns the rows."""
    import_tensorflow()
    features, units, count = (3, 64, 20) if options.quick else (FEATURES, UNITS, FRAMES)
    rounds, rows, table = harness.rounds_of(options), [], []
    frames = np.random.default_rng(0).normal(size=(count, features)).astype("float32")
    with tempfile.TemporaryDirectory() as folder:
        build = options.cpp and streams.built(Path(folder, "build"), options.cpp)
        for name, model in models(features, units).items():
            place = Path(folder, name.replace(" ", "-"))
            bundle = streams.exported(place, model, features, ("int8",))
            if options.frames and not table:
                _run_on(bundle, frames, options.frames // 10)
            found = _by_host(bundle, frames, build, rounds)
            expected = _scores(np.asarray(model(frames[None]))[0])
            table.append([name, *_told(bundle, found, expected)])
            ours, _ = found["Python"]
            rows += [
                harness.compare_times(f"{name} in {host} vs Python", times, ours, "us", 1e6)
                for host, (times, _) in found.items()
                if host != "Python"
            ]
    header = ["model", "bytes of state", *found, "largest difference", "in int8"]
    harness.print_table(header, table)
    print(f"microseconds a frame; measured on {harness.machine_of_exports()}; 1 thread a graph")
    return rows


def _by_host(bundle, frames, build, rounds):
    """Return host -> (seconds a frame of each round, the score of each frame)."""
    found = {
        "Python": _in_python(bundle, frames, rounds),
        "Python, int8": _in_python(bundle, frames, rounds, "int8"),
        "TensorFlow": _in_tensorflow(bundle, frames, rounds),
    }
    if shutil.which("node") and (PACKAGE / "node_modules").is_dir():
        found["Node"] = _in_node(bundle, frames, rounds)
    if build:
        found["C++"] = _in_cpp(bundle, frames, rounds, build)
    return {
        host: ([time / len(frames) for time in times], scores)
        for host, (times, scores) in found.items()
    }


def _run_on(bundle, frames, tenth):
    """Print the time of a frame and the memory of the process, ten times."""
    stream, rows = serving.load(bundle, threads=1).open(), []
    following = itertools.cycle(frames[:, None])
    for part in range(1, 11):
        start = time.perf_counter()
        for frame in itertools.islice(following, tenth):
            stream.push(frame)
        each = (time.perf_counter() - start) / tenth
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        rows.append([f"{part * tenth:,}", f"{each * 1e6:.1f}", f"{resident / 2**20:.1f}"])
    harness.print_table(["frames", "us a frame", "resident MiB"], rows)


def _told(bundle, found, expected):
    """Return cells of the table: bytes, microseconds by host, and the largest differences."""
    size = serving.load(bundle).open().state.nbytes
    times = [f"{statistics.median(times) * 1e6:.1f}" for times, _ in found.values()]
    far = {
        host: float(np.abs(np.array(scores) - expected).max())
        for host, (_, scores) in found.items()
    }
    int8 = far.pop("Python, int8")
    return [f"{size:,}", *times, f"{max(far.values()):.1e}", f"{int8:.1e}"]


def _scores(logits):
    """Return the largest probability of each frame."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return 1 / exponentials.sum(axis=-1)


def _timed(push, frames, rounds):
    def all_of(_):
        for frame in frames:
            push(frame)

    return harness.times_in_turn({"host": all_of}, rounds)["host"]


def _in_python(bundle, frames, rounds, precision="float32"):
    pipeline = serving.load(bundle, precision, threads=1)
    stream = pipeline.open()
    scores = [stream.push(frame[None])[0].score for frame in frames]
    return _timed(lambda frame: stream.push(frame[None]), frames, rounds), scores


def _in_tensorflow(bundle, frames, rounds):
    import tensorflow as tf

    signature = tf.saved_model.load(str(bundle / "saved_model/1")).signatures["stream"]
    state = {
        name: array[None] for name, array in serving.load(bundle).streaming.graph.zeros.items()
    }

    def push(frame):
        found = signature(frames=tf.constant(frame[None, None]), **state)
        state.update({name: found[f"next_{name}"] for name in state})
        return found["output"].numpy()[0, 0]

    scores = _scores(np.stack([push(frame) for frame in frames]))
    return _timed(push, frames, rounds), scores


def _in_node(bundle, frames, rounds):
    file = bundle.parent / "frames.json"
    file.write_text(json.dumps(frames.tolist()))
    printed = json.loads(harness.run_program("node", LOOP, bundle, rounds, file))
    return printed["seconds"], printed["scores"]


def _in_cpp(bundle, frames, rounds, build):
    lines = "\n".join(",".join(map(repr, frame)) for frame in frames.tolist())
    printed = harness.run_program(
        build / "stream", bundle, "--library", streams.library(), given=lines
    )
    scores = [json.loads(line)["score"] for line in printed.splitlines()]
    times = harness.run_program(
        build / "stream_loop", bundle, streams.library(), rounds, len(frames)
    )
    return json.loads(times)["ours"], scores


def models(features, units):
    """Return name -> a model that tags frames."""
    import keras

    from seqkeras import recurrent
    from seqkeras.transformer import Encoder, EncoderBlock

    def recurrent_layers(kind, **options):
        return [kind(units, return_sequences=True, **options) for _ in range(2)]

    block = EncoderBlock(
        units, HEADS, 4 * units, pre_norm=True, attention_window=REACH, causal=True
    )
    layers = {
        "LSTM, 2 layers": recurrent_layers(recurrent.LSTM),
        "GRU, 2 layers": recurrent_layers(recurrent.GRU),
        "QRNN, 2 layers": recurrent_layers(recurrent.QRNN, window=2),
        "convolutions, 4 layers": [
            keras.layers.Conv1D(
                units, 3, padding="causal", dilation_rate=2**layer, activation="relu"
            )
            for layer in range(4)
        ],
        "Transformer, 2 layers": [keras.layers.Dense(units), Encoder(block, 2)],
    }
    return {name: streams.tagger(features, found) for name, found in layers.items()}


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("stream_hosts", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=20, help="Timed rounds of each host. Default: 20."
    )
    parser.add_argument(
        "--frames",
        type=harness.count,
        help="Frames of the first model, to see memory and time over.",
    )
    parser.add_argument("--cpp", type=Path, metavar="HEADERS", help=streams.CPP_HELP)
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
