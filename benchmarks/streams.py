"""A stream that answers frame by frame, against what else answers a frame.

    python -m benchmarks.streams [--json FILE] [--quick] [--cpp HEADERS]

Ours is `push` of one frame: numbers checked, the graph run, an answer made. The rivals, with the
same weights:

    session.run  a bare loop of onnxruntime over the same graph and state, without an answer
    window       onnxruntime over the graph of whole recordings, with the last WINDOW frames anew
    stateful     Keras's `stateful=True` model, `predict_on_batch` of one frame
    SavedModel   the bundle's signature `stream` in TensorFlow

One row compares `push` of a table's row, a dictionary of 16 numbers, with the bare loop; one 64
streams in a batch with one, in frames a second; one the cost of a frame after many frames with that
of an early one. With --cpp, one compares `push` of `serving/cpp` with a bare
loop of onnxruntime in C++ (stream_loop.cpp).
"""

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import harness
from seqkeras.quiet import import_tensorflow
from seqkeras.serving.rows import Column, Rows

FEATURES, UNITS, LABELS, WINDOW = 16, 128, 5, 128
AT_ONCE = 100  # frames of a round
MANY = 64  # streams in a batch
LATE = 1_000_000
CPP_HELP = "Folder of onnxruntime's C++ headers (docs/edge.md). Default: C++ is not measured."
GOALS = {"session.run": 1 / 1.3, f"{MANY} streams": 8.0, "frame": 1 / 1.1, "C++": 1 / 1.1}


def measure(options):
    """Export, check and time the models; returns the rows."""
    import_tensorflow()
    features, units, window = (3, 5, 7) if options.quick else (FEATURES, UNITS, WINDOW)
    rounds, rows = harness.rounds_of(options), []
    with tempfile.TemporaryDirectory() as folder:
        build = options.cpp and built(Path(folder, "build"), options.cpp)
        for name, (ours, stateful) in _models(features, units).items():
            place = Path(folder, name.replace(" ", "-"))
            bundle = exported(place, ours, features)
            table = exported(place / "table", ours, features, of_rows=True)
            rows += _compare(name, bundle, table, stateful, window, rounds, options.quick)
            if build:
                loop = build / "stream_loop"
                rows.append(_compare_in_cpp(name, bundle, loop, rounds, options.quick))
    print(
        f"measured on {harness.machine_of_exports()}; 1 thread a graph, medians of {rounds} rounds"
    )
    return rows


def _models(features, units):
    """Return name -> (model of ours, the same of Keras's stateful layers or None)."""
    import keras

    from seqkeras import recurrent

    def model(kind, batch_size=None, **options):
        layers = [kind(units, return_sequences=True, **options) for _ in range(2)]
        return tagger(features, layers, batch_size)

    made = {}
    for name, own, other in (
        ("lstm 2 layers", recurrent.LSTM, keras.layers.LSTM),
        ("gru 2 layers", recurrent.GRU, keras.layers.GRU),
    ):
        ours, stateful = model(own), model(other, batch_size=1, stateful=True)
        stateful.set_weights([weight[:] for weight in ours.get_weights()])
        made[name] = ours, stateful
    return made


def tagger(features, layers, batch_size=None):
    """Return a model that gives each frame logits of tags; of one frame, if `batch_size` is
    given."""
    import keras

    length = 1 if batch_size else None
    frames = hidden = keras.Input((length, features), batch_size=batch_size, name="frames")
    for layer in layers:
        hidden = layer(hidden)
    return keras.Model(frames, keras.layers.Dense(LABELS)(hidden))


def exported(folder, model, features, precisions=(), of_rows=False):
    """Return a bundle of a `tagger`, with a stream; of the rows of a table, or of arrays."""
    from seqkeras.export import save_run
    from seqkeras.export.bundle import ExportOptions, export
    from seqkeras.export.tolerances import Tolerances

    frames = np.random.default_rng(0).normal(size=(23, features)).astype("float32")
    settings = {"labels": [f"tag {number}" for number in range(LABELS)], "scheme": None}
    if of_rows:
        columns = [Column(f"x{place}", mean=0.1, deviation=2.0) for place in range(features)]
        settings["rows"] = dataclasses.asdict(Rows(tuple(columns)))
        frames = frames.tolist()
    save_run(
        folder / "run",
        model,
        "Tag",
        validation=[{"input": frames}],
        limits={"source_length": 4096},
        settings=settings,
    )
    options = ExportOptions(precisions, Tolerances(agreement=0.0), stream=True)
    export(folder / "run", folder / "bundle", options=options)
    return folder / "bundle"


def _compare(name, bundle, table, stateful, window, rounds, quick):
    import tensorflow as tf

    from seqkeras import serving

    pipeline, of_rows = (serving.load(folder, threads=1) for folder in (bundle, table))
    graph, features = pipeline.streaming.graph, len(of_rows.rows.names)
    random = np.random.default_rng(1)
    frames = random.normal(size=(AT_ONCE, 1, features)).astype("float32")
    last = random.normal(size=(1, window, features)).astype("float32")
    many = [frames[index % AT_ONCE] for index in range(MANY)]
    stream, streams, late = pipeline.open(), pipeline.open(streams=MANY), pipeline.open()
    row_stream, row = of_rows.open(), dict(zip(of_rows.rows.names, frames[0, 0].tolist()))
    for _ in range(2 if quick else LATE // 4096):
        late.push(random.normal(size=(5 if quick else 4096, features)).astype("float32"))
    whole = _open(bundle / "onnx/model.onnx")
    bare = _open(bundle / "onnx/stream.onnx")
    names = [value.name for value in bare.get_outputs()]
    states = [value.name for value in bare.get_inputs() if value.name != "frames"]
    signature = tf.saved_model.load(str(bundle / "saved_model/1")).signatures["stream"]
    held = {"bare": _zeros(graph), "saved_model": _zeros(graph)}

    def by_session(frame):
        found = dict(zip(names, bare.run(names, {"frames": frame[None]} | held["bare"])))
        held["bare"] = {state: found[f"next_{state}"] for state in states}
        return found["output"]

    def by_saved_model(frame):
        found = signature(frames=tf.constant(frame[None]), **held["saved_model"])
        held["saved_model"] = {state: found[f"next_{state}"] for state in states}
        return found["output"].numpy()

    ways = {
        "ours": lambda frame: stream.push(frame),
        "session.run": by_session,
        "window": lambda frame: whole.run(None, {"frames": last}),
        "stateful": lambda frame: stateful.predict_on_batch(frame[None]),
        "SavedModel": by_saved_model,
        "late": lambda frame: late.push(frame),
        "row": lambda frame: row_stream.push([row]),
        f"{MANY} streams": lambda frame: streams.push(many),
    }
    _require_equal(name, pipeline, ways, frames)
    few = {"window": 4, "stateful": 4, "SavedModel": 4, f"{MANY} streams": 8}
    counts = {way: 1 if quick else AT_ONCE // few.get(way, 1) for way in ways}

    def contender(way):
        return lambda _: [ways[way](frame) for frame in frames[: counts[way]]]

    times = harness.times_in_turn({way: contender(way) for way in ways}, rounds)
    each = {way: [total / counts[way] for total in found] for way, found in times.items()}
    rows = [
        harness.compare_times(
            f"{name} frame vs {way}", each["ours"], each[way], "us", 1e6, GOALS.get(way)
        )
        for way in ("session.run", "window", "stateful", "SavedModel")
    ]
    case = f"{name} row of a table vs session.run"
    rows.append(harness.compare_times(case, each["row"], each["session.run"], "us", 1e6))
    of_many = [total / MANY for total in each[f"{MANY} streams"]]
    rows.append(
        harness.compare_times(
            f"{name} frame of {MANY} streams vs one",
            of_many,
            each["ours"],
            "us",
            1e6,
            GOALS[f"{MANY} streams"],
        )
    )
    rows.append(
        harness.compare_times(
            f"{name} frame 1,000,000 vs an early one",
            each["late"],
            each["ours"],
            "us",
            1e6,
            GOALS["frame"],
        )
    )
    return rows


def library():
    """Return the path of onnxruntime's library in its wheel."""
    [found] = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.1*")
    return found


def built(folder, headers):
    """Return a folder in which `stream` and `stream_loop` are built."""
    sources = harness.CHECKOUT / "serving/cpp"
    program = harness.CHECKOUT / "benchmarks/stream_loop.cpp"
    options = [f"-DONNXRUNTIME_INCLUDE_DIR={headers}", f"-DPROGRAMS={program}"]
    for arguments in (
        ["-S", sources, "-B", folder, *options],
        ["--build", folder, "--target", "stream", "stream_loop"],
    ):
        harness.run_program("cmake", *arguments)
    return folder


def _compare_in_cpp(name, bundle, loop, rounds, quick):
    count = 1 if quick else AT_ONCE
    printed = harness.run_program(loop, bundle, library(), rounds, count)
    each = {way: [total / count for total in totals] for way, totals in json.loads(printed).items()}
    case = f"{name} frame in C++ vs session.run in C++"
    return harness.compare_times(case, each["ours"], each["bare"], "us", 1e6, GOALS["C++"])


def _require_equal(name, pipeline, ways, frames):
    """Raise a ValueError unless all ways give the same tag to each of some frames."""
    stream = pipeline.open()
    expected = [stream.push(frame)[0] for frame in frames[:20]]
    for way in ("session.run", "stateful", "SavedModel"):
        numbers = np.array([np.asarray(ways[way](frame)).reshape(-1) for frame in frames[:20]])
        found = [f"tag {tag}" for tag in numbers.argmax(axis=-1)]
        if found != [word.tag for word in expected]:
            raise ValueError(f"{name}: {way} does not give the tags of ours")


def _zeros(graph):
    return {name: array[np.newaxis] for name, array in graph.zeros.items()}


def _open(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("streams", __doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=harness.count, default=30, help="Timed rounds of each case. Default: 30."
    )
    parser.add_argument("--cpp", type=Path, metavar="HEADERS", help=CPP_HELP)
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
