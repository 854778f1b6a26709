"""Streams of a toy: the sum of all frames so far, times W."""

import asyncio
import dataclasses
import io
import json

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.__main__ import main
from seqkeras.serving.manifest import StateEntry
from seqkeras.serving.rows import Column, Memory, Rows
from seqkeras.serving.streams import StreamState
from tests.arrays import floats
from tests.serving.pipelines.toys import forecaster, frames_graph, write_bundle
from tests.serving.written import model_of, save_graphs, write

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
    streams.replace(2)
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


def test_states_and_streams_that_do_not_fit_are_refused(bundles, pipeline):
    saved = bytes(pipeline.open().state)
    other = serving.load(bundles["other"], threads=1)
    ended = pipeline.open()
    ended.end()
    for call, message in (
        (lambda: other.open(state=saved), "Classify: state is that of another bundle or precision"),
        (lambda: pipeline.open(state=saved[:-1]), "open: state must be the bytes of a stream's"),
        (lambda: pipeline.open(state=saved[:20]), "open: state must be the bytes of a stream's"),
        (lambda: pipeline.open(state=saved + b"1"), "there are more of them than the arrays have"),
        (lambda: pipeline.open(state=b"state\n1\n2"), "do not begin as those of a state do"),
        (
            lambda: pipeline.open(state=saved.replace(b'"frames": 0', b'"frames": "0"')),
            "they name no bundle, or no number of frames",
        ),
        (
            lambda: pipeline.open(state=saved.replace(b'"numbers": null', b'"numbers": "a"')),
            "their memory of rows holds no numbers and time",
        ),
        (lambda: pipeline.open(state=3), "Classify: state must be the state of a stream, or its "),
        (lambda: pipeline.open(streams=0), "Classify: streams must be a whole number of at least"),
        (lambda: pipeline.open(streams=2, state=saved), "state is of one stream"),
        (lambda: pipeline.open(streams=2).push([None]), "frames must be a list of 2, one for each"),
        (lambda: pipeline.open(streams=2).state(2), "index must be from 0 to 1; received int 2"),
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


def test_the_command_answers_each_line_and_keeps_the_state(bundles, tmp_path, capsys, monkeypatch):
    state = tmp_path / "state"

    def run(lines, *options):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
        status = main(["stream", str(bundles["one"]), "--state", str(state), *options])
        return status, *capsys.readouterr()

    numbers = [",".join(map(str, frame)) for frame in FRAMES.tolist()]
    status, output, _ = run(["a,b,c", *numbers[:4]])
    labels = ["on" if score > 0.5 else "off" for score in expected(FRAMES)]
    assert status == 0 and [line.split("\t")[0] for line in output.splitlines()] == labels[:4]
    status, output, error = run([numbers[4], "1,2", "x,y,z", *numbers[5:]], "--json")
    found = output.splitlines()
    assert status == 1 and len(found) == 9 and len(error.splitlines()) == 2
    assert [json.loads(line)["labels"] for line in found[:1] + found[3:]] == [
        [label] for label in labels[4:]
    ]
    assert "row, line 2: a row must be a line of a CSV file: it has 2 cells" in error
    state.write_bytes(state.read_bytes()[:30])
    status, _, error = run(numbers)
    assert status == 1 and "state must be the bytes of a stream's state, whole" in error
    assert len(state.read_bytes()) == 30


def test_the_command_says_which_row_is_refused(of_rows, capsys, monkeypatch):
    lines = b"load,kind\n1,a\nmuch,a\n2,b\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert main(["stream", str(of_rows)]) == 1
    output, error = capsys.readouterr()
    assert output.splitlines()[1] == "" and "row 2: 'load' must be a number" in error
