"""Training on long recordings by windows that carry their state (--carry-every)."""

import csv
import json
import types

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import recurrent, serving
from seqkeras.export.bundle import export
from seqkeras.training import streamed
from seqkeras.training.answering import graphs
from seqkeras.training.carried import CarriedFrames
from seqkeras.training.parts import frames as parts_of_frames
from seqkeras.training.parts.encoders import encoded_frames
from seqkeras.training.tasks.classification import ClassificationOptions
from seqkeras.training.tasks.tagging import TaggingOptions
from tests.arrays import close, floats, gradients, needs_tensorflow, numbers, randomize
from tests.conftest import long_fixture, others_long
from tests.references.bptt import bptt_gradients
from tests.training.commands import (
    assert_goes_on,
    evaluated,
    exported,
    printed,
    refused_options,
    scores_of,
)
from tests.training.test_causal_forecasting import STREAM
from tests.training.test_forecasting import COLUMNS, SIZES, arguments, hourly, task_of
from tests.training.test_frames import OF_TAGS, SENSORS, TINY, as_rows, recordings

B, T, D, K = 3, 14, 2, 5
CUTS = [0, 4, 9, T]
ENCODERS = {
    "lstm": {},
    "gru": {"encoder": "gru"},
    "simple_rnn": {"encoder": "simple_rnn"},
    "qrnn": {"encoder": "qrnn"},
    "convolution": {"encoder": "convolution", "width": 4},
    "transformer": {"encoder": "transformer", "attention_window": 5, "num_heads": 3},
}
# A GRU and a plain RNN carry a state as an LSTM does.
KINDS = ("lstm", "qrnn", "convolution", "transformer", "gru", "simple_rnn")
OF_EACH_KIND, OF_FAST_KINDS = others_long(KINDS, short=4), others_long(KINDS, short=3)
KEEPING = [*SENSORS, "--causal", "true", "--dropout", "0"]


def tagger(dropout=0.0, **given):
    """A model of frames as the task makes it, of random weights."""
    sizes = {"units": 7, "embedding_dim": 6, "num_layers": 2, "causal": True, "dropout": dropout}
    options = TaggingOptions(file="frames.npz", **sizes | given)
    inputs, hidden, _ = encoded_frames(options, lambda frames: frames, D, T)
    return randomize(keras.Model(inputs, keras.layers.Dense(K)(hidden)))


def carrying(model, batch_size=B):
    carried = CarriedFrames(model, batch_size)
    carried.build()
    return carried


def windows(frames, cuts=CUTS):
    """Inputs of windows of recordings that begin with the first."""
    for start, end in zip(cuts, cuts[1:]):
        yield {"frames": frames[:, start:end], "begins": np.full(len(frames), start == 0)}


def whole(frames):
    return {"frames": frames, "lengths": np.full(len(frames), frames.shape[1])}


def mean_loss(targets, logits):
    loss = keras.losses.sparse_categorical_crossentropy
    return ops.mean(loss(targets, logits, from_logits=True))


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_windows_in_turn_give_the_answers_of_the_whole_recording(name, tmp_path):
    model, frames = tagger(**ENCODERS[name]), floats(B, T, D)
    carried, expected = carrying(model), numbers(model(whole(frames)))
    found = [numbers(carried(inputs)) for inputs in windows(frames)]
    close(np.concatenate(found, axis=1), expected)
    carried.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for name, value in carried.state.items():
        close(again.state[name], value)
    close(carried(whole(frames)), expected)  # whole recordings leave the state
    for name, value in again.state.items():
        close(carried.state[name], value)


@pytest.mark.parametrize("name", OF_FAST_KINDS)
def test_a_row_that_begins_anew_knows_nothing_of_the_recording_before(name):
    model, frames = tagger(**ENCODERS[name]), floats(B, T, D)
    carried = carrying(model)
    *_, last = windows(frames)
    for inputs in windows(floats(B, T, D, seed=7)):  # the padding of its end, too
        carried(inputs)
    begins = np.array([True, False, True])
    found = carried(last | {"begins": begins})
    expected = model(whole(last["frames"]))
    close(found[::2], expected[::2])
    assert np.abs(found[1] - expected[1]).max() > 1e-3


@pytest.mark.parametrize("name", OF_FAST_KINDS)
def test_a_window_as_long_as_the_recording_has_the_gradients_of_the_usual_step(name):
    model, frames = tagger(**ENCODERS[name]), floats(B, T, D)
    carried = carrying(model)
    targets = np.random.default_rng(0).integers(K, size=(B, T))
    [window] = windows(frames, [0, T])
    usual = gradients(model, lambda model: mean_loss(targets, model(whole(frames), training=True)))
    found = gradients(carried, lambda model: mean_loss(targets, model(window, training=True)))
    close(found, usual, rtol=1e-4)


def test_the_gradient_is_that_of_a_loop_whose_state_is_a_constant_in_each_window():
    inputs = keras.Input((None, D), name="frames")
    layer, dense = recurrent.SimpleRNN(5, return_sequences=True), keras.layers.Dense(3)
    model = randomize(keras.Model(inputs, dense(layer(inputs))))
    carried, frames = carrying(model), floats(B, T, D)
    targets = np.random.default_rng(0).integers(3, size=(B, T))
    W, U, b = (np.asarray(weight, "float64") for weight in layer.get_weights())
    V, c = (np.asarray(weight, "float64") for weight in dense.get_weights())
    h = np.zeros((B, 5))
    for window, (start, end) in zip(windows(frames), zip(CUTS, CUTS[1:])):
        read, wanted = window["frames"].astype("float64"), targets[:, start:end]
        ones = np.ones(wanted.shape)
        *expected, _, _ = bptt_gradients([W.T, U.T, V.T, b, c, read, h], wanted, ones, ones)
        found = gradients(
            carried,
            lambda model, window=window, wanted=wanted: (
                mean_loss(wanted, model(window, training=True)) * wanted.size
            ),
        )
        dW, dU, dV, db, dc = expected
        close(found, [dW.T, dU.T, db, dV.T, dc], rtol=1e-4, atol=1e-5)
        for frame in range(read.shape[1]):
            h = np.tanh(read[:, frame] @ W + h @ U + b)


def lstm_by_hand(variables, frames, state):
    """Logits of an LSTM and a dense layer, frame by frame, and the state after the last frame."""
    kernel, recurrent_kernel, bias, dense, dense_bias = variables
    h, c = state or (ops.zeros((B, 5)), ops.zeros((B, 5)))
    logits = []
    for x in ops.unstack(frames, axis=1):
        gates = ops.matmul(x, kernel) + ops.matmul(h, recurrent_kernel) + bias
        i, f, z, o = ops.split(gates, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(z)
        h = ops.sigmoid(o) * ops.tanh(c)
        logits.append(ops.matmul(h, dense) + dense_bias)
    return ops.stack(logits, axis=1), (h, c)


def convolutions_by_hand(variables, frames, state):
    """The same of two convolutions that see three frames; the state is the last two of each."""
    hidden, after = list(ops.unstack(frames, axis=1)), []
    for layer, activation in enumerate((ops.relu, lambda x: x)):
        kernel, bias = variables[2 * layer : 2 * layer + 2]
        zeros = [ops.zeros_like(hidden[0])] * 2
        seen = [*(state[layer] if state else zeros), *hidden]
        after.append(seen[-2:])
        hidden = [
            activation(sum(ops.matmul(seen[t + k], kernel[k]) for k in range(3)) + bias)
            for t in range(len(hidden))
        ]
    return ops.stack(hidden, axis=1), after


@pytest.mark.parametrize(
    ("by_hand", "layers_of"),
    [
        (lstm_by_hand, lambda: [recurrent.LSTM(5, return_sequences=True), keras.layers.Dense(K)]),
        (
            convolutions_by_hand,
            lambda: [
                keras.layers.Conv1D(7, 3, padding="causal", activation="relu"),
                keras.layers.Conv1D(K, 3, padding="causal"),
            ],
        ),
    ],
    ids=["lstm", "convolutions"],
)
def test_each_window_has_the_gradient_of_a_loop_by_hand(by_hand, layers_of):
    inputs = hidden = keras.Input((None, D), name="frames")
    for layer in layers_of():
        hidden = layer(hidden)
    carried, frames = carrying(randomize(keras.Model(inputs, hidden))), floats(B, T, D)
    targets, state = np.random.default_rng(0).integers(K, size=(B, T)), None
    for window, (start, end) in zip(windows(frames), zip(CUTS, CUTS[1:])):
        wanted = targets[:, start:end]

        def loss_by_hand(model, window=window, wanted=wanted, state=state):
            logits, _ = by_hand(model.trainable_variables, window["frames"], state)
            return mean_loss(wanted, logits)

        expected = gradients(carried, loss_by_hand)
        _, state = by_hand(carried.trainable_variables, window["frames"], state)
        state = keras.tree.map_structure(numbers, state)  # constants in the next window
        found = gradients(
            carried,
            lambda model, window=window, wanted=wanted: mean_loss(
                wanted, model(window, training=True)
            ),
        )
        close(found, expected, rtol=1e-4)


@pytest.mark.parametrize("name", OF_FAST_KINDS)
def test_each_layer_that_drops_out_does_so_in_training_alone(name, monkeypatch):
    model, frames = tagger(0.5, **ENCODERS[name]), floats(B, T, D)
    carried, calls = carrying(model), []
    called = keras.layers.Dropout.call

    def counted(self, inputs, training=False):
        calls.append(training)
        return called(self, inputs, training)

    monkeypatch.setattr(keras.layers.Dropout, "call", counted)
    model(whole(frames), training=True)
    usual, calls[:] = [*calls], []
    [window] = windows(frames, [0, T])
    first = numbers(carried(window, training=True))
    assert calls == usual == [True] * len(usual) and usual
    assert np.abs(first - numbers(carried(window, training=True))).max() > 1e-3
    calls.clear()
    close(carried(window), model(whole(frames)))
    assert not any(calls)


def markers(path, count=24, length=900, every=200, seed=0):
    """A file of long recordings: the tag is the last marker, which was a frame long ago."""
    generator = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["series", "x", "y", "z", "tag"])
        for number in range(count):
            on = 0
            for frame in range(length + 13 * number):
                marked = frame == 0 or generator.random() < 1 / every
                on = generator.integers(2) if marked else on
                signs = (marked and on, marked and 1 - on, generator.normal())
                writer.writerow([number, *map(float, signs), ("off", "on")[on]])
    return str(path)


OF_MARKERS = "--encoder gru --units 12 --embedding-dim 6 --learning-rate 0.01 --batch-size 7"


@long_fixture
def remembering(tmp_path_factory):
    """A run that learned markers, its file, and what it printed."""
    folder = tmp_path_factory.mktemp("markers")
    file = markers(folder / "markers.csv")
    options = [*KEEPING, *OF_MARKERS.split(), "--carry-every", 30, "--passes", 5]
    return folder, file, printed("tagging", file, "--out", folder / "run", *options)


def test_what_was_seen_many_windows_ago_is_learned_and_streams(remembering):
    folder, _, lines = remembering
    assert "  7 rows that go on from batch to batch, 30 frames in each" in lines
    assert not any(line.endswith(" cut") for line in lines)
    scores = scores_of(folder / "run")
    assert scores["accuracy"] > 0.98 and scores["frames"] > 900 * scores["recordings"]
    assert 1 <= scores["delay_frames"] < 20
    test = markers(folder / "test.csv", 2, 3000, seed=1)
    tag = serving.load(exported(folder, stream=True), threads=1)
    with open(test, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["series"] == "0"]
    stream = tag.open()
    answers = [stream.push(rows[start : start + 97]) for start in range(0, len(rows), 97)]
    tags = [word.tag for part in answers for word in part]
    assert tags == [word.tag for word in tag(tuple(rows)).words]
    assert np.mean([found == row["tag"] for found, row in zip(tags, rows, strict=True)]) > 0.98
    of_run, of_bundle = (evaluated(folder / name, test) for name in ("run", "bundle"))
    assert of_run == of_bundle | {"delay_frames": of_run["delay_frames"]}


def test_pieces_of_a_windows_length_without_a_state_do_not_learn_it(remembering, tmp_path):
    _, file, _ = remembering
    options = [*KEEPING, *OF_MARKERS.split(), "--max-length", 30, "--passes", 5]
    printed("tagging", file, "--out", tmp_path / "run", *options)
    assert scores_of(tmp_path / "run")["accuracy"] < 0.75


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_classifier_learns_the_label_at_the_end_of_each_window(name, tmp_path):
    file = as_rows(tmp_path / "sensors.csv", recordings(41), {(0, 0), (3, 2)})
    given = arguments(**ENCODERS[name], carry_every=4, passes=12, held_out=0.2, looks=1)
    command = ["classification", file, *SENSORS, "--causal", "true", *TINY, *given]
    printed(*command, "--out", tmp_path / "run")
    scores = scores_of(tmp_path / "run")
    assert scores["accuracy"] == 1 and scores["validation_loss"] < 0.1
    assert 1 <= scores["delay_frames"] < 4
    assert evaluated(tmp_path / "run", file)["accuracy"] > 0.9
    frames, _, label = recordings(3, seed=1)[2]
    classify = serving.load(exported(tmp_path, stream=True), threads=1)
    answers = classify.open().push([dict(zip("xyz", frame)) for frame in frames.tolist()])
    assert [answer.labels for answer in answers[3:]] == [(label,)] * len(answers[3:])


def batches_of(options):
    """The recordings of training, their run, and the batches."""
    task = options.make()
    examples, _ = task.reading.read()
    run, _ = task.prepared(None, examples, examples[:1], {})
    return examples, run, task.modelling.batches(examples, run)


@pytest.mark.parametrize(("every", "ends"), [(None, (4, 8, 12, 16)), (3, (3, 6, 9, 12, 15))])
def test_the_label_counts_after_every_few_frames_and_at_the_end(every, ends, tmp_path):
    file = as_rows(tmp_path / "sensors.csv", recordings(9))
    named = {"file": file, "numbers": ("x", "y", "z"), "series_column": "series"}
    sizes = {"causal": True, "carry_every": 4, "answer_every": every, "batch_size": 2}
    examples, run, batches = batches_of(ClassificationOptions(**named, **sizes))
    labels, counts = (
        run.record.settings["labels"],
        np.cumsum([-(-len(own) // 4) for own in examples]),
    )
    for own, end in zip(examples, counts):
        windows = np.arange(end - -(-len(own) // 4), end)
        found = batches.arrays[1][windows].ravel()[: len(own)]
        known = {place for place in range(len(own)) if found[place] >= 0}
        assert known == {place - 1 for place in (*ends, len(own)) if place <= len(own)}
        assert {*found[[*known]]} == {labels.index(own.target)}


def test_one_recording_is_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(parts_of_frames, "MOST_KEPT", 13)
    file = markers(tmp_path / "day.csv", 1, 600, 50)
    options = ["--numbers", "x,y,z", "--causal", "true", *OF_MARKERS.split()]
    options += "--encoder convolution --looks 1".split()
    lines = printed("tagging", file, *options, "--carry-every", 9, "--out", tmp_path / "run")
    assert lines[0].startswith("tagging: 9 training and 1 validation recordings, 2 tags")
    assert scores_of(tmp_path / "run")["frames"] == 60
    [example] = json.loads((tmp_path / "run/validation.json").read_text())
    assert len(example["input"]) == len(example["target"]) == 13


def summed_up(**given):
    """The same with an answer to the whole recording, of the mean over time."""
    model = tagger(**given)
    return keras.Model(model.inputs, keras.layers.GlobalAveragePooling1D()(model.output))


@pytest.mark.parametrize(
    ("model_of", "given", "is_streamed"),
    others_long([(tagger, {}, True), (summed_up, {}, True), (tagger, {"causal": False}, False)], 2),
    ids=["each frame", "whole recording", "looks ahead"],
)
def test_a_long_recording_is_answered_in_chunks(model_of, given, is_streamed, monkeypatch):
    monkeypatch.setattr(streamed, "CHUNK", 3)
    monkeypatch.setattr(graphs, "FRAME_BUDGET", 8)
    model, read = model_of(**given), []
    monkeypatch.setattr(
        graphs, "streamed", lambda *given: read.append(given) or streamed.streamed(*given)
    )
    record = types.SimpleNamespace(pipeline="Tag", settings={})
    graph = graphs.graph_of(model, types.SimpleNamespace(record=record))
    for length in (8, T):
        arrays = whole(floats(B, length, D))
        found = graph.function(**arrays)["output"]
        close(found, model(arrays))
    assert len(read) == is_streamed


def test_the_delay_of_a_long_recording_is_measured_in_chunks(tmp_path, monkeypatch):
    file = as_rows(tmp_path / "sensors.csv", recordings(31))
    options = [*OF_TAGS, "--carry-every", "4", "--passes", "2", "--encoder", "qrnn"]
    printed("tagging", file, "--out", tmp_path / "run", *KEEPING, *options)
    expected = evaluated(tmp_path / "run", file)
    monkeypatch.setattr(streamed, "CHUNK", 3)
    assert evaluated(tmp_path / "run", file) == expected


@pytest.mark.parametrize("model", others_long(["qrnn", "transformer", "gru"]))
def test_a_forecaster_reads_its_series_from_begin_to_end(model, tmp_path):
    file = hourly(tmp_path / "load.csv")
    given = {
        "causal": "true",
        "carry_every": 7,
        "model": model,
        "batch_size": 4,
        "passes": 12,
        "looks": 1,
    }
    given |= {"attention_window": 6, "units": 8, "num_heads": 2} if model == "transformer" else {}
    options = arguments(**COLUMNS, **SIZES | given, learning_rate=0.02)
    printed("forecasting", file, "--out", tmp_path / "run", *options)
    assert scores_of(tmp_path / "run")["better_than_naive"] > 0.5
    export(tmp_path / "run", tmp_path / "bundle", options=STREAM)


def test_a_window_of_a_series_has_a_target_after_each_step(tmp_path):
    task, examples, _ = task_of(hourly(tmp_path / "load.csv"), causal=True, carry_every=7)
    inputs, targets = task.modelling.batches(examples, None).arrays
    table, rows = examples[0].table, examples[0].rows
    end = max(own.future.start for own in examples)
    cut = end // SIZES["batch_size"]  # the only series, in parts
    assert [*inputs["window"].starts[:4]] == [0, 7, 14, cut] and cut == 16
    features = rows.scaled(rows.filled(table[:end]))
    for window, start in enumerate(inputs["window"].starts):
        length, place = inputs["window"].lengths[window], np.array([window])
        close(inputs["window"][place][0, :length], features[start : start + length])
        for step in range(length):
            following = table[start + step + 1 : start + step + 6]
            close(targets[place][0, step], rows.scaled(following)[:, :1])
        assert np.isnan(targets[place][0, length:]).all()


@pytest.mark.long
def test_rows_that_go_on_go_on_in_a_training_that_was_stopped(tmp_path):
    file = as_rows(tmp_path / "sensors.csv", recordings(31))
    options = [*KEEPING, *OF_TAGS, "--carry-every", 4, "--dropout", 0.1]
    assert_goes_on(tmp_path, "tagging", file, *options, "--max-steps", 8, "--steps-per-save", 4)


@pytest.mark.long
@pytest.mark.parametrize("name", ENCODERS)
def test_it_learns_in_half_precision(name, tmp_path):
    file = as_rows(tmp_path / "sensors.csv", recordings(31))
    options = arguments(**ENCODERS[name], mixed_precision="bfloat16", carry_every=4, passes=12)
    printed("tagging", file, "--out", tmp_path / "run", *KEEPING, *OF_TAGS, *options)
    assert scores_of(tmp_path / "run")["accuracy"] > 0.95


@needs_tensorflow
@pytest.mark.long
@pytest.mark.parametrize("name", ENCODERS)
def test_xla_compiles_the_step_of_a_window(name):
    import tensorflow as tf

    model, frames = tagger(**ENCODERS[name]), floats(B, T, D)
    carried, plain = carrying(model), carrying(model)
    targets = np.random.default_rng(0).integers(K, size=(B, 7))

    @tf.function(jit_compile=True)
    def step(window):
        with tf.GradientTape() as tape:
            loss = mean_loss(targets, carried(window, training=True))
        return tape.gradient(loss, carried.trainable_variables)

    for window in windows(frames, [0, 7, T]):
        expected = gradients(
            plain, lambda model, window=window: mean_loss(targets, model(window, training=True))
        )
        close(step(window), expected, rtol=1e-4)


@pytest.fixture
def sensors(tmp_path):
    return as_rows(tmp_path / "sensors.csv", recordings(9))


ROWS = "{sensors} --numbers x,y,z --series-column series --carry-every 4"
test_what_does_not_go_together_is_refused = refused_options(
    "",
    (f"tagging {ROWS}", "--carry-every is for --causal models of frames."),
    (f"classification {ROWS}", "--carry-every is for --causal models of frames."),
    (f"classification {ROWS} --causal true --max-length 9", "reads whole recordings; leave out"),
    (f"tagging {ROWS} --causal true --batch-tokens 99", "each row goes on; choose --batch-size"),
    ("forecasting {table} --targets x --carry-every 7", "--carry-every is for --causal models."),
)
test_too_few_frames_are_refused = refused_options(
    f"tagging {ROWS} --causal true",
    ("--batch-size 999", "fewer than the 999 rows of a batch; choose a smaller --batch-size."),
    status=1,
)
