"""Streams of a toy: the sum of all frames so far, times W."""

import asyncio
import dataclasses
import functools
import io
import json
import signal as signals
import subprocess
import sys
from subprocess import PIPE

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.__main__ import main
from seqkeras.serving.manifest import StateEntry
from seqkeras.serving.rows import Column, Memory, Rows
from seqkeras.serving.streams import StreamState
from seqkeras.serving.times import TimeColumn
from tests.arrays import floats
from tests.serving.pipelines.toys import forecaster, frames_graph, write_bundle
from tests.serving.written import model_of, save_graphs, with_its_checksum, write

F, W = 3, floats(3, 2, seed=1)
LABELS = ["off", "on"]
STREAM = """
    stream (float[batch,frames,{features}] {name}, float[batch,{features}] total) =>
        (float[batch,frames,{size}] output, float[batch,{features}] next_total) {{
        before = Unsqueeze (total, axis_1)
        sums = CumSum ({name}, int_1)
        totals = Add (before, sums)
        answers = MatMul (totals, W)
        output = Reshape (answers, shape)
        next_total = Gather <axis = 1> (totals, end)
    }}
"""
STATE = (StateEntry("total", "stream"),)


def stream_of(weights, name="frames", size="2"):
    shape = np.int64([0, 0, *map(int, size.split(","))])
    text = STREAM.format(name=name, features=len(weights), size=size)
    return model_of(text, W=weights, shape=shape, end=np.int64(-1))


def written(folder, pipeline, graphs, settings):
    graphs = save_graphs(folder, graphs)
    return write(folder, pipeline, graphs, {}, settings=settings, state=STATE)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    graphs = {"model": frames_graph(W), "stream": stream_of(W)}
    made = {}
    for name, scale in (("one", 1), ("other", 2)):
        graphs["stream"] = stream_of(scale * W)
        made[name] = written(folder / name, "Classify", graphs, {"labels": LABELS})
    return made


@pytest.fixture
def pipeline(bundles):
    return serving.load(bundles["one"], threads=1)


def expected(frames):
    """The probability of "on" after each frame."""
    logits = np.cumsum(np.asarray(frames, "float64"), axis=0) @ W
    return 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))


def scores(answers):
    return [answer.scores["on"] for answer in answers]


FRAMES = floats(11, F, seed=2)


@pytest.mark.parametrize("sizes", [[11], [1] * 11, [4, 7]])
def test_a_stream_answers_each_frame_from_all_before_it(pipeline, sizes):
    stream, answers = pipeline.open(), []
    for size in sizes:
        answers += stream.push(FRAMES[len(answers) : len(answers) + size])
    np.testing.assert_allclose(scores(answers), expected(FRAMES), rtol=1e-5)
    assert stream.state.frames == 11 and stream.delay == 0


def test_a_state_goes_on_in_another_stream(bundles, pipeline):
    stream = pipeline.open()
    stream.push(FRAMES[:5])
    saved = bytes(stream.state)
    assert stream.state.nbytes == 12
    assert repr(stream.state) == "<StreamState after 5 frames, 12 bytes>"
    stream.push(FRAMES[5:])
    for state in (saved, StreamState.from_bytes(saved)):
        other = serving.load(bundles["one"], threads=1).open(state=state)
        np.testing.assert_allclose(scores(other.push(FRAMES[5:])), expected(FRAMES)[5:], rtol=1e-5)


def test_many_streams_are_stepped_together_each_with_its_own_frames(pipeline):
    streams = pipeline.open(streams=4)
    given = {index: floats(23, F, seed=index) for index in range(4)}
    done, answers = [0] * 4, [[] for _ in range(4)]
    for sizes in ([3, 0, 1, 7], [1, 1, 1, 1], [0, 0, 5, 0], [2, 9, 0, 2]):
        chunks = [
            given[i][done[i] : done[i] + size] if size else None for i, size in enumerate(sizes)
        ]
        for index, found in enumerate(streams.push(chunks)):
            answers[index] += found
            done[index] += sizes[index]
    for index in range(4):
        alone = expected(given[index][: done[index]])
        np.testing.assert_allclose(scores(answers[index]), alone, rtol=1e-5)
        assert streams.state(index).frames == done[index]
    saved = streams.state(2)
    streams.replace(np.int64(2))
    found = streams.push([None, None, FRAMES[:1], None])[2]
    assert scores(found) == pytest.approx(expected(FRAMES[:1]))
    streams.replace(0, saved)
    own = np.concatenate([given[2][: done[2]], FRAMES[:1]])
    assert scores(streams.push([FRAMES[:1], *[None] * 3])[0]) == pytest.approx(expected(own)[-1:])


def test_frames_of_an_iterator_are_answered_as_they_come(pipeline):
    async def sensor():
        for frame in FRAMES:
            yield frame

    async def answers(source):
        return [answer async for answer in pipeline.open().follow(source)]

    for source in (sensor(), iter(FRAMES)):
        found = asyncio.run(answers(source))
        np.testing.assert_allclose(scores(found), expected(FRAMES), rtol=1e-5)


REFUSED = [
    (FRAMES[:, :2], "must have shape (frames, 3), one frame at least; received (11, 2)"),
    (FRAMES[0], "must have shape (frames, 3), one frame at least; received (3,)"),
    (FRAMES[:0], "one frame at least; received (0, 3)"),
    ([[1.0, np.nan, 0]], "must be finite numbers in float32"),
    ([[1.0, np.inf, 0]], "must be finite numbers in float32"),
    ([["a", "b", "c"]], "must be numbers"),
    ([[3e38, 3e38, 3e38], [3e38, 3e38, 3e38]], "the model gives no finite number"),
]


@pytest.mark.parametrize(("frames", "message"), REFUSED)
def test_a_frame_that_is_refused_leaves_the_state_as_it_was(pipeline, frames, message):
    stream, streams = pipeline.open(), pipeline.open(streams=2)
    stream.push(FRAMES[:3])
    streams.push([FRAMES[:3], FRAMES[:2]])
    before = bytes(stream.state), [bytes(streams.state(index)) for index in range(2)]
    for push in (lambda: stream.push(frames), lambda: streams.push([FRAMES[3:], frames])):
        with pytest.raises(ValueError) as caught:
            push()
        assert message in str(caught.value) and "\n" not in str(caught.value)
    assert before == (bytes(stream.state), [bytes(streams.state(index)) for index in range(2)])
    np.testing.assert_allclose(scores(stream.push(FRAMES[3:])), expected(FRAMES)[3:], rtol=1e-5)


CHANGES = [
    (b'"frames": 0', b'"frames": "0"', "they name no bundle, or no number of frames"),
    (b'"numbers": null', b'"numbers": "a"', "their memory of rows holds no numbers, time and"),
    (b'"time": null', b'"time": %d' % 2**70, "their memory of rows holds no numbers, time and"),
    (b'"series": null', b'"series": 1', "their memory of rows holds no numbers, time and series"),
    (b"[3]", b"[%d]" % 2**70, "open: state must be the bytes of a stream's state, whole"),
    (b"[3]", b"[2]", "there are more of them than the arrays have"),
]


def test_a_state_with_any_changed_byte_is_refused(pipeline):
    stream = pipeline.open()
    stream.push(FRAMES[:3])
    saved = bytes(stream.state)
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << place % 8
        with pytest.raises(ValueError, match="open: state must be the bytes of a stream's state"):
            pipeline.open(state=damaged)


def test_states_and_streams_that_do_not_fit_are_refused(bundles, pipeline):
    saved = bytes(pipeline.open().state)
    other = serving.load(bundles["other"], threads=1)
    ended = pipeline.open()
    ended.end()
    for call, message in (
        (lambda: other.open(state=saved), "Classify: state is that of another bundle or precision"),
        (lambda: pipeline.open(state=saved[:-1]), "open: state must be the bytes of a stream's"),
        (lambda: pipeline.open(state=saved[:20]), "open: state must be the bytes of a stream's"),
        (lambda: pipeline.open(state=saved + b"1"), "their checksum is another one"),
        (lambda: pipeline.open(state=b"state\n1\n2"), "do not begin as those of a state do"),
        *(
            (
                functools.partial(pipeline.open, state=with_its_checksum(saved.replace(old, new))),
                message,
            )
            for old, new, message in CHANGES
        ),
        (lambda: pipeline.open(state=3), "Classify: state must be the state of a stream, or its "),
        (lambda: pipeline.open(streams=0), "Classify: streams must be a whole number of at least"),
        (lambda: pipeline.open(streams=2, state=saved), "state is of one stream"),
        (lambda: pipeline.open(streams=2).push([None]), "frames must be a list of 2, one for each"),
        (lambda: pipeline.open(streams=2).state(2), "index must be from 0 to 1; received int 2"),
        (lambda: pipeline.open(streams=2).state(True), "index must be from 0 to 1; received bool"),
        (lambda: pipeline.open(streams=2).replace("0"), "index must be from 0 to 1; received '0'"),
        (lambda: asyncio.run(anext(pipeline.open().follow(5))), "must be an iterable of frames"),
        (lambda: ended.push(FRAMES), "Classify: the stream has ended; open another one"),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert message in str(caught.value)


def test_a_bundle_without_a_stream_says_how_to_get_one(tmp_path):
    folder = write_bundle(tmp_path, "Classify", frames_graph(W), {"labels": LABELS}, {})
    with pytest.raises(ValueError, match="has no stream; export the run .* with --stream"):
        serving.load(folder).open()


COLUMNS = (
    Column("load", mean=2.0, deviation=0.5, fill=1.5, may_be_missing=True),
    Column("kind", categories=("a", "b")),
)


def forecaster_of_rows(folder):
    """Write a forecaster of rows: a number that may be missing, and a category."""
    weights = floats(4, 8, seed=3)
    graphs = {"model": forecaster(4), "stream": stream_of(weights, "window", "2,4")}
    settings = {"rows": dataclasses.asdict(Rows(COLUMNS))}
    return written(folder, "Forecast", graphs, settings)


@pytest.fixture
def of_rows(tmp_path):
    return forecaster_of_rows(tmp_path / "rows")


ROWS = [
    {"load": None, "kind": "b"},
    {"load": "2.5", "kind": "a"},
    {"load": "", "kind": "b"},
    {"load": 3, "kind": "c"},
]


def test_rows_remember_what_stands_for_a_missing_number(of_rows):
    pipeline = serving.load(of_rows, threads=1)
    whole = pipeline.open().push(ROWS)
    stream = pipeline.open()
    alone = []
    for row in ROWS:
        stream = pipeline.open(state=bytes(stream.state))
        alone += stream.push([row])
    for one, other in zip(whole, alone, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-5)
    assert stream.state.memory.numbers == (3.0,)
    other = dataclasses.replace(stream.state, memory=Memory((1.0, 2.0)))
    with pytest.raises(ValueError, match="the state is of rows with other columns; begin anew"):
        pipeline.open(state=other).push(ROWS[:1])
    assert [answer.unknown for answer in alone] == [{}, {}, {}, {"kind": {"c": 1}}]
    features = pipeline.rows.window(ROWS, "rows")[0]
    totals = np.cumsum(features, axis=0) @ floats(4, 8, seed=3)
    values = pipeline.rows.unscaled(totals[-1].reshape(2, 4))
    np.testing.assert_allclose(alone[-1].values, values, rtol=1e-4)


@pytest.fixture
def command(monkeypatch, capsys):
    """The result of `seqkeras stream`: status, lines of output, lines of error."""

    def run(bundle, content, *options):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        status = main(["stream", str(bundle), *map(str, options)])
        output, error = capsys.readouterr()
        return status, output.splitlines(), error.splitlines()

    return run


def test_a_first_line_with_a_number_is_a_frame(bundles, command):
    status, output, error = command(bundles["one"], b"1,,3\n1,1_0,3\n1,2,3\n", "--json")
    assert status == 1 and len(output) == 3 and "labels" in json.loads(output[2])
    assert [line.partition("received ")[2] for line in error] == ["''.", "'1_0'."]


def test_frames_before_the_first_answer_have_lines_without_one(tmp_path, command):
    graphs = {"model": frames_graph(W), "stream": stream_of(W)}
    bundle = written(tmp_path / "bundle", "Classify", graphs, {"labels": LABELS})
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["graphs"]["stream"]["warm_up"] = 2
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    frames = [[1.0] * 3, [-1.0] * 3, *FRAMES[:2].tolist()]
    stream, streams = (serving.load(bundle).open(streams=count) for count in (None, 2))
    assert (stream.delay, streams.warm_up) == (0, 2)
    for push in (stream.push, lambda rows: streams.push([rows, None])[0]):
        answers = push(frames)
        assert answers[:2] == [None, None]
        np.testing.assert_allclose(scores(answers[2:]), expected(FRAMES[:2]), rtol=1e-4)
    content = "".join(f"{','.join(map(str, frame))}\n" for frame in [["a", "b", "c"], *frames])
    status, output, _ = command(bundle, content.encode())
    assert status == 0 and output[:2] == ["", ""] and len(output) == 4 and all(output[2:])
    status, output, _ = command(bundle, content.encode(), "--json")
    assert output[:2] == ["{}", "{}"] and json.loads(output[3])["labels"]


def test_the_command_answers_each_line_and_keeps_the_state(bundles, tmp_path, command):
    bundle, state = bundles["one"], tmp_path / "state"

    def run(lines, *options):
        return command(bundle, "\n".join(lines).encode(), "--state", state, *options)

    numbers = [",".join(map(str, frame)) for frame in FRAMES.tolist()]
    labels = ["on" if score > 0.5 else "off" for score in expected(FRAMES)]
    status, output, _ = run(["a,b,c", *numbers[:4]])
    assert status == 0 and [line.split("\t")[0] for line in output] == labels[:4]
    status, output, error = run([numbers[4], "1,2", "x,y,z", *numbers[5:]], "--json")
    assert status == 1 and len(output) == 9
    assert [json.loads(line)["labels"] for line in output[:1] + output[3:]] == [
        [label] for label in labels[4:]
    ]
    assert [line.partition(": standard input, ")[2] for line in error] == [
        "line 2: a row must have 3 cells, as the first line; received 2.",
        "line 3: a frame must be numbers with commas between them; received 'x'.",
    ]
    assert json.loads(output[1]) == {"error": error[0].partition(": ")[2]}
    saved = state.read_bytes()
    state.write_bytes(saved[:30])
    status, _, [error] = run(numbers)
    assert status == 1 and f"{state}: open: state must be the bytes of a stream's state" in error
    assert state.read_bytes() == saved[:30]
    missing = tmp_path / "none/state"
    assert command(bundle, b"", "--state", missing) == (
        1,
        [],
        [f"seqkeras stream: {missing}: No such file or directory"],
    )


TABLE_ERRORS = [
    (
        b"\xef\xbb\xbfload,kind\n1,a\nmuch,a\n",
        ["line 3: 'load' must be a number; received 'much'."],
    ),
    (
        b"load,kind\n1,a\n\xff,a\n",
        ["line 3: text must be UTF-8; received byte 0xff at position 0."],
    ),
    (b'load,kind\n1,a\n"1,a\n', ["line 3: a row must be a line of a CSV file: unexpected end of"]),
    (b"load,sort\n1,a\n", ["line 1: the first line must name the columns load, kind; it has no "]),
]


@pytest.mark.parametrize(("content", "errors"), TABLE_ERRORS)
def test_the_command_names_the_line_that_is_refused(of_rows, command, content, errors):
    status, output, lines = command(of_rows, content)
    assert status == 1 and len(lines) == len(errors)
    for line, error in zip(lines, errors):
        assert line.startswith(f"seqkeras stream: standard input, {error}")
    assert not output or output[1] == ""


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_the_command_with_its_state_written(bundles, tmp_path, signal):
    state, number = tmp_path / "state", signals.Signals[signal]
    command = [sys.executable, "-m", "seqkeras.serving", "stream", bundles["one"], "--state", state]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), PIPE)
    heard = functools.partial(signals.signal, number, signals.SIG_DFL)  # not ignored, as by nohup
    with subprocess.Popen(command, **pipes, text=True, preexec_fn=heard) as process:
        for frame in FRAMES[:3].tolist():
            process.stdin.write(f"{','.join(map(str, frame))}\n")
            process.stdin.flush()
            assert process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number and process.stderr.read() == ""
    assert StreamState.from_bytes(state.read_bytes()).frames == 3


HOURS = TimeColumn(("time",), step=3600)


@pytest.fixture
def of_times(tmp_path):
    """A forecaster of rows with a time, of several series."""
    weights = floats(4, 8, seed=3)
    graphs = {"model": forecaster(4), "stream": stream_of(weights, "window", "2,4")}
    settings = {"rows": dataclasses.asdict(Rows(COLUMNS, HOURS, "site"))}
    return written(tmp_path / "times", "Forecast", graphs, settings)


def row_at(hour, load=1.0, **others):
    return {"time": f"2024-01-01 {hour:02}:00", "load": load, "kind": "a", **others}


def values_of(answers):
    return np.stack([answer.values for answer in answers])


def test_a_gap_is_filled_with_rows_without_values(of_times, command):
    pipeline = serving.load(of_times)
    rows = [row_at(0), row_at(1, 3.0), row_at(4, 2.0), row_at(5)]
    empty = [{"time": f"2024-01-01 0{hour}:00", "load": None, "kind": None} for hour in (2, 3)]
    whole = values_of(pipeline.open().push([*rows[:2], *empty, *rows[2:]]))[[0, 1, 4, 5]]
    stream = pipeline.open()
    assert stream.missing(rows[0]) == []
    stream.push(rows[:2])
    with pytest.raises(ValueError, match="3:00:00|02:00:00.*may be given without values .Stream.m"):
        stream.push(rows[2:3])
    filled = stream.push([*stream.missing(rows[2]), rows[2]])
    np.testing.assert_array_equal(values_of(filled[2:]), whole[2:3])
    for row in (row_at(4), row_at(3), {**row_at(5), "time": "2024-01-01 05:30"}):
        assert stream.missing(row) == []
    for row, message in (
        (
            {**row_at(0), "time": "2034-01-01 00:00"},
            "87,667 rows are missing before 2034-01-01T00:00",
        ),
        ({"load": 1}, "frames has no 'time'"),
    ):
        with pytest.raises(ValueError, match=message):
            stream.missing(row)
    lines = ["time,load,kind", *(",".join(map(str, row.values())) for row in rows)]
    lines.insert(3, "2024-01-01 02:00,much,a")
    content = "\n".join(lines).encode()
    status, output, error = command(of_times, content, "--json", "--gaps", "fill")
    assert status == 1 and len(error) == 1 and "line 4: 'load' must be a number" in error[0]
    del output[2]
    found = [json.loads(line)["values"] for line in output]
    np.testing.assert_allclose(found, whole, rtol=1e-5)
    status, output, error = command(of_times, content)
    assert (
        status == 1 and output[2:] == ["", "", ""] and "(Stream.missing, --gaps fill)" in error[2]
    )


def test_bench_measures_a_frame_alone(of_times, bundles, tmp_path, capsys):
    file, figures = tmp_path / "rows.csv", tmp_path / "bench.json"
    lines = ["time,load,kind", *(",".join(map(str, row_at(hour).values())) for hour in range(5))]
    file.write_text("\n".join(lines))
    frames = tmp_path / "frames.npy"
    np.save(frames, FRAMES)
    options = ["--batch-sizes", "1", "--repeats", "7", "--json", str(figures)]
    for bundle, name in ((of_times, file), (bundles["one"], frames)):
        assert main(["bench", str(bundle), "--input", str(name), *options]) == 0
        [row] = json.loads(figures.read_text())["stream"]
        header, numbers = capsys.readouterr().out.splitlines()[2:4]
        assert header.split() == [*row] and [*map(float, numbers.split())] == [*row.values()]
        assert row["frames"] == 7 and 0 < row["median_ms"] <= row["p95_ms"]
        factor = row["median_ms"] / 1000 / 3600 if bundle == of_times else 0
        assert row.get("real_time_factor", 0) == pytest.approx(factor, rel=0.1)


def test_rows_of_several_series_are_streams_of_their_own(of_times, command, tmp_path):
    pipeline = serving.load(of_times)
    rows = [row_at(hour, load, site=site) for hour, load in ((0, 1.0), (1, 5.0)) for site in "ab"]
    alone = [values_of(pipeline.open().push(rows[start::2])) for start in (0, 1)]
    stream = pipeline.open()
    stream.push(rows[:1])
    for push in (lambda: stream.push(rows[1:2]), lambda: pipeline(tuple(rows[:2]))):
        with pytest.raises(ValueError, match="'site' must be 'a', as before, for a series is read"):
            push()
    assert stream.state.memory.series == "a"
    content = "\n".join(
        ["time,load,kind,site", *(",".join(map(str, row.values())) for row in rows)]
    ).encode()
    status, output, _ = command(of_times, content, "--json")
    assert status == 0
    answers = [json.loads(line) for line in output]
    assert [answer["series"] for answer in answers] == ["a", "b", "a", "b"]
    for start in (0, 1):
        found = [answer["values"] for answer in answers[start::2]]
        np.testing.assert_allclose(found, alone[start], rtol=1e-5)
    status, output, _ = command(of_times, content)
    assert [line.split("\t")[0] for line in output] == ["a", "b", "a", "b"]
    state = tmp_path / "state"
    status, output, error = command(of_times, content, "--state", state)
    assert status == 1 and len(error) == 2
    assert "line 3: --state keeps the stream of one series, 'a'; received 'b'." in error[0]
    status, _, error = command(of_times, content.replace(b",a\n", b",c\n"), "--state", state)
    assert "--state keeps the stream of one series, 'a'; received 'c'" in error[0]


def test_rows_with_known_rows_are_no_lines_of_a_file(tmp_path, command):
    columns = [{"name": "load"}, {"name": "plan", "known": True, "categories": [*"abcd"]}]
    stream = stream_of(floats(5, 8, seed=3), "window", "2,4")
    graphs = {"model": forecaster(5, known="yes"), "stream": stream}
    bundle = written(tmp_path / "bundle", "Forecast", graphs, {"rows": {"columns": columns}})
    status, _, error = command(bundle, b"load,plan\n1,b\n")
    assert status == 1 and "a row must have its known rows beside it" in error[0]
