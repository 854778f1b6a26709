"""A causal model leaves as a graph that answers frames as they come."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import recurrent, serving
from seqkeras.attention import StructuredSelfAttention
from seqkeras.export import save_run
from seqkeras.export.__main__ import main
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.serving.manifest import read_manifest
from seqkeras.serving.opening import Runtime
from tests.arrays import floats, numbers, randomize
from tests.conftest import others_long
from tests.zoo import classify, generate

F = 3
LABELS = ["low", "middle", "high"]
OF_TENSORFLOW = ("Tag", "Forecast")  # whose SavedModel streams, too


def recordings(*lengths):
    return [floats(length, F, seed=length) for length in lengths]


def classifier(frames, units=7):
    hidden = keras.layers.Conv1D(5, 3, activation="relu")(frames)  # padding="valid"
    hidden = recurrent.LSTM(units, return_sequences=True)(hidden)
    summary, _ = StructuredSelfAttention(5, 2)(hidden)
    return keras.layers.Dense(3)(summary)


def tagger(frames):
    hidden = keras.layers.Conv1D(5, 3, padding="same", activation="relu")(frames)
    return keras.layers.Dense(3)(keras.layers.GRU(7, return_sequences=True)(hidden))


def forecaster(frames):
    hidden = recurrent.GRU(7)(frames)
    return keras.layers.Reshape((2, 1))(keras.layers.Dense(2)(hidden)) + frames[:, -1:, :1]


PIPELINES = {
    "Classify": (classifier, "frames", {"labels": LABELS}),
    "Tag": (tagger, "frames", {"labels": LABELS, "scheme": None}),
    "Forecast": (forecaster, "window", {}),
}


def saved(folder, name, **sizes):
    make, given, settings = PIPELINES[name]
    frames = keras.Input((None, F), name=given)
    model = keras.Model(frames, make(frames, **sizes))
    randomize(model)
    examples = [{"input": recording} for recording in recordings(5, 7, 11)]
    save_run(
        folder, model, name, validation=examples, limits={"source_length": 64}, settings=settings
    )
    return model


@pytest.fixture(scope="module", params=others_long(PIPELINES))
def streaming(request, tmp_path_factory):
    """A model, and the bundle that streams it."""
    folder = tmp_path_factory.mktemp("streams")
    model = saved(folder / "run", request.param)
    options = ExportOptions(stream=True, saved_models=request.param in OF_TENSORFLOW)
    export(folder / "run", folder / "bundle", options=options)
    return model, folder / "bundle"


def pipeline_of(bundle):
    return read_manifest(bundle).pipeline


def as_numbers(answer):
    """The numbers of an answer: of a tag its score, of classes theirs by label."""
    if hasattr(answer, "values"):
        return answer.values
    return (
        [answer.scores[label] for label in LABELS] if hasattr(answer, "scores") else [answer.score]
    )


def expected_of(model, frames, stream):
    """What the model says after each frame from the first answer on, from its own call."""
    if stream.delay:
        probabilities = ops.softmax(model(frames[None]))[0]
        return [[float(row.max())] for row in numbers(probabilities)[: len(frames) - stream.delay]]
    ends = range(stream.warm_up + 1, len(frames) + 1)
    rows = [numbers(model(frames[None, :end]))[0] for end in ends]
    return rows if rows[0].ndim == 2 else numbers(ops.softmax(np.stack(rows)))


def test_the_stream_answers_as_the_model_does_after_each_frame(streaming):
    model, bundle = streaming
    stream = serving.load(bundle, threads=1).open()
    [frames] = recordings(13)
    answers = [
        answer for size in (1, 5, 7) for answer in stream.push(frames[stream.state.frames :][:size])
    ]
    expected = expected_of(model, frames, stream)
    assert stream.warm_up == {"Classify": 2, "Tag": 1, "Forecast": 0}[pipeline_of(bundle)]
    assert answers[: stream.warm_up] == [None] * stream.warm_up
    for answer, values in zip(answers[stream.warm_up :], expected, strict=True):
        np.testing.assert_allclose(as_numbers(answer), values, rtol=1e-4, atol=1e-5)


def test_a_hundred_thousand_frames_are_those_of_the_whole_recording(streaming):
    _, bundle = streaming
    pipeline = serving.load(bundle, threads=1)
    graph, count = pipeline.streaming.graph, 100_000
    random = np.random.default_rng(0)
    frames = random.normal(size=(1, count, F)).astype("float32")
    name = "window" if pipeline.manifest.pipeline == "Forecast" else "frames"
    zeros = {entry: array[np.newaxis] for entry, array in graph.zeros.items()}
    whole, _ = graph.run({name: frames}, zeros)
    state, parts, start = zeros, [], 0
    while start < count:
        size = int(random.integers(1, 2000))
        numbers, state = graph.run({name: frames[:, start : start + size]}, state)
        parts.append(numbers)
        start += size
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-4, atol=1e-5)
    session = Runtime(threads=1).session(str(bundle / "onnx/model.onnx"))
    [model] = session.run(None, {name: frames})
    last = whole[0, graph.delay :] if graph.delay else whole[0, -1:]
    expected = model[0, : -graph.delay] if graph.delay else model
    np.testing.assert_allclose(last, expected, rtol=1e-4, atol=1e-5)


def test_the_manifest_names_the_state_and_the_card_tells_of_the_stream(streaming):
    _, bundle = streaming
    manifest = read_manifest(bundle)
    graph = manifest.graphs["stream"]
    names = [spec.name for spec in graph.inputs]
    assert {entry.per for entry in manifest.state} == {"stream"}
    assert {*manifest.stream_state} == {*names[1:]}
    assert {f"next_{name}" for name in manifest.stream_state} < {
        spec.name for spec in graph.outputs
    }
    assert graph.delay == (1 if manifest.pipeline == "Tag" else 0)
    assert manifest.parity["stream_chunks_difference"] <= 1e-5
    if manifest.pipeline in OF_TENSORFLOW:
        assert manifest.parity["saved_model_stream_difference"] <= 1e-4
    text = (bundle / "README.md").read_text(encoding="utf-8")
    when = {"Classify": "from frame 3 on", "Tag": "1 frames late", "Forecast": "at once"}
    assert "## Stream" in text and f"as it comes, {when[manifest.pipeline]}:" in text


def test_int8_answers_alike_whatever_the_chunks_and_the_batch_are(tmp_path):
    saved(tmp_path / "run", "Classify", units=64)
    options = ["--stream", "--no-saved-models", "--precision", "int8", "--agreement", "0.3"]
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle"), *options]) == 0
    pipeline = serving.load(tmp_path / "bundle", "int8", threads=1)
    frames, other = recordings(13, 11)
    whole = pipeline.open().push(frames)
    stream = pipeline.open()
    assert [stream.push(frames[[frame]])[0] for frame in range(13)] == whole
    streams = pipeline.open(streams=2)
    assert streams.push([frames, other])[0] == whole
    exact = serving.load(tmp_path / "bundle", threads=1).open().push(frames)
    for one, close in zip(whole[stream.warm_up :], exact[stream.warm_up :], strict=True):
        np.testing.assert_allclose(as_numbers(one), as_numbers(close), atol=0.05)


def ahead(folder):
    frames = keras.Input((None, F), name="frames")
    hidden = recurrent.Bidirectional(recurrent.GRU(5), name="both_ways")(frames)
    model, settings = keras.Model(frames, keras.layers.Dense(3)(hidden)), {"labels": LABELS}
    examples = [{"input": recording} for recording in recordings(5, 7)]
    save_run(folder, model, "Classify", examples, {"source_length": 64}, settings=settings)


@pytest.mark.parametrize(
    "make, message",
    [
        (ahead, "--stream: both_ways (Bidirectional) reads from the last frame"),
        (classify, "segment_ids; frames alone stream"),
        (generate, "Generate streams the text that it generates; leave out --stream"),
    ],
)
def test_what_does_not_stream_is_refused_in_a_line(make, message, tmp_path, capsys):
    make(tmp_path / "run")
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle"), "--stream"]) == 1
    [line] = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not (tmp_path / "bundle").exists()
