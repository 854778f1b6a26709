"""Streams of bundles in Python, to which those of `serving/javascript` are held.

`write` makes a bundle for each of `BUNDLES`, and streams.json:

    one      pushes of one stream: frames, and answers or an error
    cut      the number of pushes before the state was saved
    state    its bytes in base64
    several  pushes of three streams together

`npm test` leaves the state that JavaScript has after `cut` pushes in NAME.state.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.tolerances import Tolerances
from seqkeras.serving.manifest import StateEntry
from seqkeras.serving.printing import as_content
from seqkeras.serving.streams import StreamState
from tests.arrays import floats
from tests.export import test_streams as exported
from tests.serving import test_streams as toys
from tests.serving.answers import assert_same
from tests.serving.pipelines.toys import forecaster, frames_graph
from tests.serving.written import model_of, save_graphs
from tests.serving.written import write as write_bundle

F = toys.F
ENTRIES = ["sum", "count", "steps", "seen", "recent"]
OF_TYPES = f"""
    stream (float[batch,frames,3] frames, double[batch] sum, int64[batch] count,
            int32[batch] steps, bool[batch] seen, float[batch,3] recent) =>
        (float[batch,frames,2] output, double[batch] next_sum, int64[batch] next_count,
         int32[batch] next_steps, bool[batch] next_seen, float[batch,3] next_recent) {{
        of_frames = ReduceSum <keepdims = 0> (frames, axis_2)
        doubles = Cast <to = {TensorProto.DOUBLE}> (of_frames)
        sum_before = Unsqueeze (sum, axis_1)
        sums_since = CumSum (doubles, int_1)
        sums = Add (sum_before, sums_since)
        next_sum = Gather <axis = 1> (sums, end)
        zeros = Sub (of_frames, of_frames)
        ones = Add (zeros, one)
        ones_64 = Cast <to = {TensorProto.INT64}> (ones)
        count_before = Unsqueeze (count, axis_1)
        count_since = CumSum (ones_64, int_1)
        counts = Add (count_before, count_since)
        next_count = Gather <axis = 1> (counts, end)
        ones_32 = Cast <to = {TensorProto.INT32}> (ones)
        steps_before = Unsqueeze (steps, axis_1)
        steps_since = CumSum (ones_32, int_1)
        all_steps = Add (steps_before, steps_since)
        next_steps = Gather <axis = 1> (all_steps, end)
        large = Greater (of_frames, one)
        large_32 = Cast <to = {TensorProto.INT32}> (large)
        large_since = CumSum (large_32, int_1)
        seen_32 = Cast <to = {TensorProto.INT32}> (seen)
        seen_before = Unsqueeze (seen_32, axis_1)
        large_ones = Add (seen_before, large_since)
        all_seen = Cast <to = {TensorProto.BOOL}> (large_ones)
        next_seen = Gather <axis = 1> (all_seen, end)
        next_recent = Gather <axis = 1> (frames, end)
        one_logit = Cast <to = {TensorProto.FLOAT}> (sums)
        counts_32 = Cast <to = {TensorProto.INT32}> (counts)
        seen_of_all = Cast <to = {TensorProto.INT32}> (all_seen)
        both = Add (counts_32, all_steps)
        all_three = Add (both, seen_of_all)
        as_float = Cast <to = {TensorProto.FLOAT}> (all_three)
        small = Mul (as_float, tenth)
        recent_sum = ReduceSum <keepdims = 1> (recent, axis_1)
        other_logit = Add (small, recent_sum)
        logit_a = Unsqueeze (one_logit, axis_2)
        logit_b = Unsqueeze (other_logit, axis_2)
        output = Concat <axis = 2> (logit_a, logit_b)
    }}
"""
OF_HALVES = """
    stream (float[batch,frames,3] frames, float16[batch,3] total) =>
        (float[batch,frames,2] output, float16[batch,3] next_total) {
        output = MatMul (frames, W)
        next_total = Identity (total)
    }
"""
OF_KNOWN = """
    stream (float[batch,frames,6] window, float[batch,frames,2,4] known, float[batch,6] total) =>
        (float[batch,frames,2,4] output, float[batch,6] next_total) {
        before = Unsqueeze (total, axis_1)
        sums = CumSum (window, int_1)
        totals = Add (before, sums)
        answers = MatMul (totals, W)
        shaped = Reshape (answers, shape)
        output = Add (shaped, known)
        next_total = Gather <axis = 1> (totals, end)
    }
"""
MONTHS = {
    "columns": [
        {"name": "load", "may_be_missing": True, "fill": 5.25, "mean": 2.0, "deviation": 0.5},
        {"name": "wind", "categories": ["N", "S"], "known": True},
    ],
    "time": {"columns": ["time"], "unit": "month", "day": 31, "cycles": ["year"]},
    "series": "site",
}
FRAMES = floats(11, F, seed=2).tolist()
OF_TABLE = {"columns": [{"name": "x", "fill": 0.5, "may_be_missing": True}, {"name": "y"}]}
TABLE = [
    {"x": None, "y": 0.1},
    ["1e-3", -0.25],
    {"x": "", "y": None},
    {"x": 2, "y": "NA"},
    [None, 0.5],
    {"x": None, "y": 1e-7},
    [-1, 0.25],
]


@dataclass(frozen=True)
class StreamingBundle:
    """A bundle, and pushes of one stream; the frames of an error are refused.

    Attributes:
        write: takes a folder.
        pushes: frames of each.
        cut: the number of pushes before the state is saved.
        precision: of the graph.
    """

    write: Callable
    pushes: list
    cut: int = 2
    precision: str = "float32"


STREAM = ExportOptions(stream=True, saved_models=False)


def write_toy(stream, settings, pipeline="Classify", model=None, names=("total",)):
    def write(folder):
        graphs = {"model": model or frames_graph(toys.W), "stream": stream}
        graphs = save_graphs(folder, graphs)
        state = tuple(StateEntry(name, "stream") for name in names)
        write_bundle(folder, pipeline, graphs, {}, settings=settings, state=state)

    return write


def write_exported(name, options=STREAM, **sizes):
    def write(folder):
        run = folder.with_name(f"{folder.name}-run")
        exported.saved(run, name, **sizes)
        export(run, folder, options=options)

    return write


def months(start, *loads, known=True, **changes):
    """Rows of a table from a month of 2024 on, with what is known of the two months after each."""
    ends = ["01-31", "02-29", "03-31", "04-30", "05-31"]
    rows = [
        {"time": f"2024-{end}", "load": load, "wind": "NSW"[place % 3], **changes}
        for place, (end, load) in enumerate(zip(ends[start:], loads))
    ]
    return {"series": rows, "known": [[["N"], {"wind": "S"}]] * (len(rows) if known else 1)}


LABELS = {"labels": toys.LABELS}
SHAPE = {"shape": np.int64([0, 0, 2, 4]), "end": np.int64(-1)}
BUNDLES = {
    "stream-numbers": StreamingBundle(
        write_toy(toys.stream_of(toys.W), LABELS),
        [
            FRAMES[:1],
            FRAMES[1:4],
            [row[:2] for row in FRAMES],
            FRAMES[0],
            [],
            [["a", "b", "c"]],
            [[3e38] * 3] * 2,
            FRAMES[4:],
        ],
    ),
    "stream-types": StreamingBundle(
        write_toy(
            model_of(OF_TYPES, end=np.int64(-1), tenth=np.float32(0.1)), LABELS, names=ENTRIES
        ),
        [FRAMES[:3], FRAMES[3:4], FRAMES[4:]],
    ),
    "stream-rows": StreamingBundle(
        write_toy(toys.stream_of(toys.W), LABELS | {"rows": OF_TABLE}),
        [TABLE[:2], TABLE[2:3], [{"x": 1}], [{"x": 1, "y": "?"}], TABLE[3:5], TABLE[5:]],
    ),
    "stream-forecasts": StreamingBundle(
        write_toy(
            model_of(OF_KNOWN, W=floats(6, 8, seed=3), **SHAPE),
            {"rows": MONTHS},
            "Forecast",
            forecaster(6, known="yes"),
        ),
        [
            months(0, None, 7.5),
            months(2, "1.5", site=" 7.0 "),
            months(2, 3),
            months(4, 3),
            months(3, 3, site="b"),
            months(3, 3, 4, known=False, load=1e39),
            months(3, 3, known=False, wind=["N"]),
            months(3, 3, 4, known=False),
            months(3, None, 4),
        ],
    ),
    "stream-tags": StreamingBundle(
        write_exported("Tag"),
        [rows.tolist() for rows in np.split(floats(13, F, seed=13), [1, 6])],
    ),
    "stream-int8": StreamingBundle(
        write_exported(
            "Classify",
            ExportOptions(("int8",), Tolerances(agreement=0.3), saved_models=False, stream=True),
            units=64,
        ),
        [rows.tolist() for rows in np.split(floats(7, F, seed=13), [2, 3])],
        precision="int8",
    ),
}


def write(folder):
    """Write the bundles and streams.json into a folder, and a bundle whose state JavaScript does
    not keep."""
    write_toy(model_of(OF_HALVES, W=toys.W), LABELS)(folder / "stream-halves")
    found = {}
    for name, bundle in BUNDLES.items():
        bundle.write(folder / name)
        pipeline = serving.load(folder / name, bundle.precision, threads=1)
        stream = pipeline.open()
        one = [pushed(stream.push, frames) for frames in bundle.pushes[: bundle.cut]]
        state = bytes(stream.state)
        one += [pushed(stream.push, frames) for frames in bundle.pushes[bundle.cut :]]
        good = [push["frames"] for push in one if "answers" in push]
        streams = pipeline.open(streams=3)
        several = [[good[0], None, good[0]], [None, good[0], None], [good[1], None, None]]
        found[name] = {
            "precision": bundle.precision,
            "one": one,
            "cut": bundle.cut,
            "state": base64.b64encode(state).decode(),
            "several": [pushed(streams.push, frames) for frames in several],
        }
    (folder / "streams.json").write_text(json.dumps(found), encoding="utf-8")


def pushed(push, frames):
    """Return what a push gives, or its error as JavaScript words it."""
    try:
        return {"frames": frames, "answers": as_content(push(frames))}
    except ValueError as error:
        spoken = re.sub(r"\((\d+),\)", r"(\1)", str(error))
        spoken = spoken.replace(" (Stream.missing, --gaps fill)", "")
        spoken = spoken.replace("received float", "received number")
        return {"frames": frames, "error": spoken.replace("received list", "received array")}


def require_states_of_javascript(folder):
    """Assert that the states which JavaScript saved go on in Python."""
    for name, stream in json.loads((folder / "streams.json").read_text(encoding="utf-8")).items():
        content = (folder / f"{name}.state").read_bytes()
        pipeline = serving.load(folder / name, stream["precision"], threads=1)
        saved = base64.b64decode(stream["state"])
        other, own = (StreamState.from_bytes(state) for state in (content, saved))
        assert (other.bundle, other.frames, other.memory) == (own.bundle, own.frames, own.memory)
        going_on = pipeline.open(state=content)
        for push in stream["one"][stream["cut"] :]:
            if "answers" in push:
                found = json.loads(json.dumps(as_content(going_on.push(push["frames"]))))
                assert_same(found, push["answers"], rel=1e-4, abs=1e-5)
