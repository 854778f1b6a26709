"""Streams in `serving/cpp` give Python's answers, refuse what Python refuses, and share states."""

import contextlib
import dataclasses
import functools
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions
from seqkeras.export.tolerances import Tolerances
from seqkeras.serving.parsing import as_json
from seqkeras.serving.printing import as_content
from seqkeras.serving.rows import NOTHING
from seqkeras.serving.streams import StreamState
from tests.arrays import floats
from tests.serving import test_streams as toys
from tests.serving.answers import assert_same
from tests.serving.cpp.built import answer, command_of, library_of_wheel, program
from tests.serving.cpp.test_cpp import changed, other
from tests.serving.javascript import streams as others
from tests.serving.javascript.package import require_node, run
from tests.serving.javascript.streams import LABELS, write_exported, write_toy
from tests.serving.pipelines.toys import forecaster, frames_graph
from tests.serving.written import model_of, with_its_checksum

pytestmark = pytest.mark.long

F, W = toys.F, toys.W
INT8 = ExportOptions(("int8",), Tolerances(agreement=0.3), saved_models=False, stream=True)
FRAMES = toys.FRAMES
OF_ONE = W[:, :1]
THREE = {"labels": ["low", "middle", "high"]}
SCALED = {"columns": [{"name": "a", "mean": 2.0, "deviation": 0.5, "log": True}, {"name": "b"},
                      {"name": "c", "mean": -1e6, "deviation": 3.0}]}  # fmt: skip


def toy(weights, settings, pipeline="Classify", **options):
    size = options.pop("size", str(weights.shape[1]))
    name = "window" if pipeline == "Forecast" else "frames"
    stream = toys.stream_of(weights, name, size)
    return write_toy(stream, settings, pipeline, options.get("model") or frames_graph(weights))


@dataclasses.dataclass(frozen=True)
class Case:
    """A bundle, and the precision of its graph."""

    write: Callable
    precision: str = "float32"


CASES = {
    "labels": Case(toy(W, LABELS)),
    "several labels": Case(
        toy(floats(F, 3, seed=5), THREE | {"multi_label": True, "threshold": 0.4})
    ),
    "none of these": Case(toy(floats(F, 4, seed=5), THREE | {"none_of_these": True})),
    "one of two": Case(toy(OF_ONE, LABELS)),
    "a number": Case(toy(OF_ONE, {})),
    "types": Case(
        write_toy(
            model_of(others.OF_TYPES, end=np.int64(-1), tenth=np.float32(0.1)),
            LABELS,
            names=others.ENTRIES,
        )
    ),
    "halves": Case(write_toy(model_of(others.OF_HALVES, W=W), LABELS)),
    "forecasts": Case(toy(floats(F, 8, seed=3), {}, "Forecast", size="2,4", model=forecaster())),
    "quantiles": Case(
        toy(
            floats(F, 8, seed=3),
            {"quantiles": [0.1, 0.6]},
            "Forecast",
            size="2,2,2",
            model=forecaster(quantiles="yes"),
        )
    ),
    "lstm": Case(write_exported("Classify")),
    "delay": Case(write_exported("Tag")),
    "gru forecasts": Case(write_exported("Forecast")),
    "int8": Case(write_exported("Classify", INT8, units=64), precision="int8"),
}


class Calls:
    """A process that makes calls of a `StreamingModel` (calls.cpp)."""

    def __init__(self, bundle, precision="float32"):
        call = [program("calls"), bundle, library_of_wheel(), precision]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def __call__(self, *call):
        """What the call gives; its error as a ValueError."""
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        content = json.loads(line)
        if "error" in content:
            raise ValueError(content["error"])
        return content["gave"]

    def push(self, frames):
        return self("push", listed(frames))

    def push_all(self, of_all):
        return self("push", [None if frames is None else listed(frames) for frames in of_all])


def listed(frames):
    return [
        [None if number is None or np.isnan(number) else float(number) for number in frame]
        for frame in frames
    ]


@contextlib.contextmanager
def calling(bundle, precision="float32"):
    calls = Calls(bundle, precision)
    try:
        yield calls
    finally:
        calls.process.communicate(timeout=60)
    assert calls.process.returncode == 0


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Writes a bundle, by its name, once; its folder."""

    @functools.cache
    def write(name):
        folder = tmp_path_factory.mktemp("written") / "bundle"
        CASES[name].write(folder)
        return folder

    return write


def chunks_of(frames, seed):
    """Frames in chunks of random sizes."""
    random, start = np.random.default_rng(seed), 0
    while start < len(frames):
        size = int(random.integers(1, 7))
        yield frames[start : start + size]
        start += size


def content_of(answers):
    """The JSON content of answers."""
    return json.loads(as_json(as_content(answers)))


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_python_whatever_the_chunks_are(name, written):
    case, bundle = CASES[name], written(name)
    stream = serving.load(bundle, case.precision, threads=1).open()
    frames = floats(31, F, seed=7)
    with calling(bundle, case.precision) as calls:
        assert calls("open") == [stream.delay, stream.warm_up]
        for seed in range(3):
            for chunk in chunks_of(frames, seed):
                assert_same(calls.push(chunk), content_of(stream.push(chunk)))


@pytest.mark.parametrize("name", CASES)
def test_a_state_goes_on_in_the_other_language(name, written, tmp_path):
    case, bundle, file = CASES[name], written(name), tmp_path / "state"
    pipeline = serving.load(bundle, case.precision, threads=1)
    frames = floats(31, F, seed=7)
    stream = pipeline.open()
    stream.push(frames[:13])
    file.write_bytes(bytes(stream.state))
    expected = content_of(stream.push(frames[13:]))
    with calling(bundle, case.precision) as calls:
        calls("open", str(file))
        assert_same(calls.push(frames[13:]), expected)
        calls("open")
        calls.push(frames[:13])
        calls("save", str(file))
    state = StreamState.from_bytes(file.read_bytes())
    assert (state.frames, state.memory) == (13, NOTHING)
    assert_same(content_of(pipeline.open(state=state).push(frames[13:])), expected)


NODE = """
import * as ort from "onnxruntime-node";
import { readFileSync, writeFileSync } from "node:fs";
import { folder } from "./src/folder.js";
import { load } from "./src/index.js";

const [bundle, state, frames] = JSON.parse(readFileSync(0));
const stream = await (await load(folder(bundle), ort)).open({ state: readFileSync(state) });
console.log(JSON.stringify(await stream.push(frames)));
writeFileSync(state, stream.state.bytes());
"""


@pytest.mark.parametrize("name", ["types", "lstm"])
def test_a_state_goes_on_in_javascript_and_comes_back(name, written, tmp_path):
    require_node()
    bundle, file = written(name), tmp_path / "state"
    chunks = np.split(floats(31, F, seed=7), [13, 19])
    stream = serving.load(bundle, threads=1).open()
    expected = [content_of(stream.push(chunk)) for chunk in chunks]
    with calling(bundle) as calls:
        calls("open")
        assert_same(calls.push(chunks[0]), expected[0])
        calls("save", str(file))
        given = json.dumps([str(bundle), str(file), listed(chunks[1])])
        found = run("node", "--input-type=module", "--eval", NODE, given=given)
        assert_same(json.loads(found), expected[1])
        calls("open", str(file))
        assert_same(calls.push(chunks[2]), expected[2])


@pytest.mark.parametrize("name", ["types", "delay", "int8"])
def test_streams_are_stepped_together_each_with_its_own_frames(name, written, tmp_path):
    case, bundle, file = CASES[name], written(name), tmp_path / "state"
    random = np.random.default_rng(5)
    streams = serving.load(bundle, case.precision, threads=1).open(streams=5)
    with calling(bundle, case.precision) as calls:
        calls("open", 5)
        for step in range(11):
            sizes = random.integers(0, 4, size=5) if step % 3 else [1] * 5
            given = [floats(size, F, seed=step) if size else None for size in sizes]
            assert_same(calls.push_all(given), content_of(streams.push(given)))
            index, source = (int(place) for place in random.integers(0, 5, size=2))
            calls("save", str(file), source)
            assert StreamState.from_bytes(file.read_bytes()).frames == streams.state(source).frames
            if step % 2:
                calls("replace", index)
                streams.replace(index)
            else:
                calls("replace", index, str(file))
                streams.replace(index, streams.state(source))


def test_numbers_of_rows_are_the_frames_and_answers_have_the_scale_of_rows(tmp_path):
    bundle, file = tmp_path / "bundle", tmp_path / "state"
    toy(floats(F, 8, seed=3), {"rows": SCALED}, "Forecast", size="2,4", model=forecaster())(bundle)
    pipeline = serving.load(bundle, threads=1)
    rows = (np.abs(floats(17, F, seed=9)) + [0, 1, -1e6]).tolist()
    frames, _, memory = pipeline.rows.following(rows[:11], "rows", NOTHING)
    expected = content_of(pipeline.open().push(rows))
    with calling(bundle) as calls:
        calls("open")
        assert_same(calls.push(frames), expected[:11])
        calls("save", str(file))
    state = StreamState.from_bytes(file.read_bytes())
    assert state.memory.numbers == pytest.approx(memory.numbers, rel=1e-6)
    assert_same(content_of(pipeline.open(state=state).push(rows[11:])), expected[11:])


def test_rows_that_are_not_scaled_are_refused(tmp_path):
    toy(floats(F, 8, seed=3), {"rows": SCALED}, "Forecast", size="2,4", model=forecaster())(
        tmp_path
    )
    refused = answer(tmp_path, b"1,2,3\n", command="stream")
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert re.fullmatch(rb"stream: .*: it reads rows of a table, .* \(--scaled\)\n", refused.stderr)
    answered = answer(tmp_path, b"1,2,3\n", "--scaled", command="stream")
    assert (answered.returncode, answered.stderr) == (0, b"")


def test_known_numbers_stand_behind_those_of_a_row(tmp_path):
    bundle, file = tmp_path / "bundle", tmp_path / "state"
    others.BUNDLES["stream-forecasts"].write(bundle)
    pipeline = serving.load(bundle, threads=1)
    stream, pushes = pipeline.open(), [others.months(0, None, 7.5), others.months(2, "1.5")]
    memory, expected, frames = NOTHING, [], []
    for push in pushes:
        chunk = pipeline.streaming.read(push, "rows", memory)
        memory = chunk.memory
        known = chunk.arrays["known"].reshape(len(chunk), -1)
        frames.append(np.concatenate([chunk.arrays["window"], known], axis=-1))
        expected.append([{"values": answer["values"]} for answer in content_of(stream.push(push))])
    with calling(bundle) as calls:
        calls("open")
        for chunk, answers in zip(frames, expected):
            assert_same(calls.push(chunk), answers)
        calls("save", str(file))
        with pytest.raises(ValueError, match=r"must have shape \(frames, 14\).* received \(1, 6\)"):
            calls.push(frames[1][:, :6])
    state = StreamState.from_bytes(file.read_bytes())
    assert state.memory.numbers == pytest.approx(memory.numbers, rel=1e-6)
    assert state.memory.time is None and len(pipeline.open(state=state).push(pushes[0])) == 2


REFUSED = [
    (FRAMES[:, :2], None),
    (FRAMES[:0], None),
    ([[1.0, 0, 0], [1.0, np.nan, 0]], "finite numbers in float32; received nan in frame 1."),
    ([[1, 1e39, 0]], "finite numbers in float32; received inf in frame 0."),
    ([[3e38] * 3] * 2, None),
]


@pytest.mark.parametrize(("frames", "message"), REFUSED)
def test_a_frame_that_is_refused_leaves_the_state_as_it_was(frames, message, written, tmp_path):
    bundle, file = written("labels"), tmp_path / "state"
    pipeline = serving.load(bundle, threads=1)

    def refused(call):
        with pytest.raises(ValueError) as caught:
            call()
        return str(caught.value)

    def saved(*index):
        calls("save", str(file), *index)
        return file.read_bytes()

    with calling(bundle) as calls:
        calls("open")
        calls.push(FRAMES[:3])
        before, text = saved(), refused(lambda: calls.push(frames))
        expected = refused(lambda: pipeline.open().push(np.array(frames)))
        assert text == expected if message is None else text.endswith(message)
        assert saved() == before
        rest = content_of(pipeline.open(state=before).push(FRAMES[3:]))
        assert_same(calls.push(FRAMES[3:]), rest)
        calls("open", 3)
        calls.push_all([FRAMES[:3], FRAMES[:5], None])
        before = [saved(index) for index in range(3)]
        of_second = refused(lambda: calls.push_all([FRAMES[3:], frames, FRAMES[:1]]))
        assert of_second == text.replace("frames", "frames of stream 1", 1)
        assert [saved(index) for index in range(3)] == before


FORM = b'"float64", []'  # of the entry `sum`
NO_COUNT = "they name no bundle, or no number of frames"
NO_MEMORY = "their memory of rows holds no numbers, time and series"
NOT_WHOLE = [
    (b'"frames": 0', b'"frames": "0"', NO_COUNT),
    (b'"frames": 0', b'"frames": -1', NO_COUNT),
    (b'"frames": 0', b'"frames": 1e99', NO_COUNT),
    (b'"numbers": null', b'"numbers": "a"', NO_MEMORY),
    (b'"numbers": null', b'"numbers": [null]', NO_MEMORY),
    (b'"time": null', b'"time": 0.5', NO_MEMORY),
    (b'"series": null', b'"series": 1', NO_MEMORY),
    (b'"time": null', b'"other": null', "their head is no JSON of a state"),
    (FORM, b'"complex64", []', "sum must have a type of numbers, and fixed sizes for a frame"),
    (FORM, b'"float64", [-1]', "sum must have a type of numbers, and fixed sizes for a frame"),
    (FORM, b'"float64", [4294967296, 4294967296]', "an array is larger than they are"),
    (FORM, b'"float64", [5]', "there are fewer of them than the arrays have"),
    (b"stream 2", b"stream 1", "they do not begin as those of a state do"),
]
OF_ANOTHER = [
    (FORM, b'"float64", [1]'),
    (FORM, b'"int64", []'),
    (b'"sum"', b'"mus"'),
    (b'"bundle": "', b'"bundle": "0'),
]


def with_change(state, old, new):
    return with_its_checksum(state.replace(old, new, 1))


def damaged(state, place):
    return state[:place] + bytes([state[place] ^ 1 << place % 8]) + state[place + 1 :]


def test_a_state_that_does_not_fit_is_refused(written, tmp_path):
    bundle, file = written("types"), tmp_path / "state"
    saved = bytes(serving.load(bundle, threads=1).open().state)
    whole = "open: state must be the bytes of a stream's state, whole; "
    wrong = [(with_change(saved, old, new), f"{whole}{why}.") for old, new, why in NOT_WHOLE]
    wrong += [(with_its_checksum(saved + b"1"), f"{whole}there are more of them than the arrays")]
    wrong += [(saved[:length], whole) for length in range(0, len(saved), 7)]
    wrong += [(damaged(saved, place), whole) for place in range(len(saved))]
    of_another = "Classify: state is that of another bundle or precision; open it there, or begin "
    wrong += [(with_change(saved, old, new), of_another) for old, new in OF_ANOTHER]
    with calling(bundle) as calls:
        for content, message in wrong:
            file.write_bytes(content)
            with pytest.raises(ValueError) as caught:
                calls("open", str(file))
            assert content != saved and str(caught.value).startswith(message)


def test_calls_that_do_not_fit_are_refused(written, tmp_path):
    state = str(tmp_path / "state")
    with calling(written("labels")) as calls:
        calls("open")
        calls("end")
        for call, message in (
            (("push", listed(FRAMES)), "Classify: the stream has ended; open another one."),
            (("open", 0), "Classify: streams must be a whole number of at least 1; received 0."),
        ):
            with pytest.raises(ValueError, match=re.escape(message)):
                calls(*call)
        calls("open", 2)
        for call, message in (
            (("push", [None]), "frames must be a list of 2, one for each stream, nullopt for a"),
            (("save", state, 2), "Classify: a stream's index must be from 0 to 1; received 2."),
            (("replace", 2), "Classify: a stream's index must be from 0 to 1; received 2."),
            (("replace", 2, state), "Classify: a stream's index must be from 0 to 1; received 2."),
            (("replace", 1, state), "open: state must be the bytes of a stream's state, whole;"),
        ):
            with pytest.raises(ValueError, match=re.escape(message)):
                calls(*call)


def everywhere(old, new):
    return changed("manifest.json", lambda content: content.replace(old, new))


NOT_GIVEN = "the stream must take frames and its state, and give answers, in float32"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (other(b'"stream": {', b'"others": {'), "there is no stream: export the run of a model"),
        (other(b'"Classify"', b'"Translate"'), "Translate has no streams"),
        (other(b'"labels": [', b'"labels": ["a", '), "the settings of Classify are not those of"),
        (everywhere(b'"frames",', b'"others",'), NOT_GIVEN),
        (everywhere(b'"output"', b'"next_answers"'), NOT_GIVEN),
        (everywhere(b'"float32"', b'"float64"'), NOT_GIVEN),
        (everywhere(b'"float32"', b'"strings"'), "frames must have a type of numbers, and fixed"),
        (everywhere(b'"per": "stream"', b'"per": "beam"'), NOT_GIVEN),
        (changed("onnx/stream.onnx", lambda content: content + b"\0"), "stream.onnx does not have"),
    ],
)
def test_a_wrong_bundle_is_one_line(damage, message, written, tmp_path):
    bundle = shutil.copytree(written("labels"), tmp_path / "bundle")
    damage(bundle)
    found = answer(bundle, b"1,2,3\n", command="stream")
    assert (found.returncode, found.stdout) == (1, b"")
    error = found.stderr.decode()
    assert error.startswith(f"stream: {bundle}: ") and message in error and error.count("\n") == 1


def as_csv(frames):
    return "".join(f"{','.join(map(str, frame))}\n" for frame in frames.tolist()).encode()


def test_the_command_answers_each_line_and_keeps_the_state(written, tmp_path):
    bundle, state = written("delay"), tmp_path / "state"
    pipeline = serving.load(bundle, threads=1)
    expected = [answer or {} for answer in content_of(pipeline.open().push(FRAMES))]
    found = answer(bundle, as_csv(FRAMES[:4]), "--state", str(state), command="stream")
    assert (found.returncode, found.stderr) == (0, b"")
    assert_same([json.loads(line) for line in found.stdout.splitlines()], expected[:4])
    lines = as_csv(FRAMES[4:]).replace(b"\n", b"\r\n1,2\r\n1,2,\n1,2,x\xff\n\n", 1)
    found = answer(bundle, lines, "--state", str(state), command="stream")
    refused = [
        "Tag: frames must have shape (frames, 3), one frame at least; received (1, 2).",
        *(
            f"a frame must be numbers with commas between them; received '{cell}'."
            for cell in ("", "x\ufffd", "")
        ),
    ]
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert_same(answers, [expected[4], *({"error": error} for error in refused), *expected[5:]])
    assert found.returncode == 1
    assert found.stderr.decode(errors="replace").splitlines() == [
        f"stream: standard input, line {line}: {error}" for line, error in enumerate(refused, 2)
    ]
    assert StreamState.from_bytes(state.read_bytes()).frames == len(FRAMES)
    assert os.listdir(tmp_path) == ["state"]
    content = state.read_bytes()[:30]
    state.write_bytes(content)
    found = answer(bundle, lines, "--state", str(state), command="stream")
    assert found.returncode == 1 and b"state must be the bytes of a stream's" in found.stderr
    assert state.read_bytes() == content


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGPIPE])
def test_the_command_answers_at_once_and_keeps_the_state_when_it_is_ended(
    ended_by, written, tmp_path
):
    state = tmp_path / "state"
    call = command_of(written("labels"), "--state", str(state), command="stream")
    pipe = subprocess.PIPE
    with subprocess.Popen(call, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        for line in as_csv(FRAMES[:5]).splitlines(keepends=True):
            process.stdin.write(line)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["labels"]
        if ended_by == signal.SIGPIPE:
            process.stdout.close()
            process.stdin.write(as_csv(FRAMES[5:6]))
            process.stdin.flush()
        else:
            process.send_signal(ended_by)
        assert process.wait(timeout=60) == 128 + ended_by
        assert process.stderr.read() == b""
    frames = StreamState.from_bytes(state.read_bytes()).frames
    assert frames == (6 if ended_by == signal.SIGPIPE else 5)


def test_the_command_refuses_wrong_arguments(written):
    bundle = written("int8")
    found = answer(bundle, as_csv(FRAMES), "--precision", "int4", command="stream")
    reason = "precision must be one of the bundle's, float32, int8; received int4"
    assert found.returncode == 1 and found.stderr.decode() == f"stream: {bundle}: {reason}\n"
    state = bundle / "missing/state"
    found = answer(bundle, b"", "--state", str(state), command="stream")
    reason = "the state can not be written there"
    assert found.returncode == 1 and found.stderr.decode() == f"stream: {state}: {reason}\n"
    found = answer(bundle, b"", "--threads", "2x", command="stream")
    assert found.returncode == 2 and found.stderr.startswith(b"stream: --threads must be a whole")
    found = answer(bundle, b"", "--beams", command="stream")
    assert found.returncode == 2 and b"unknown: --beams; usage: stream BUNDLE" in found.stderr
