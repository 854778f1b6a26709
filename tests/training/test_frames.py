"""Classification and tagging of frames of numbers: what they learn, leave, serve and refuse."""

import csv
import dataclasses
import json

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.runs import RunError
from seqkeras.serving.__main__ import main as serve
from seqkeras.serving.rows import Rows
from seqkeras.training.parts.frames import Frames
from seqkeras.training.tasks.classification import ClassificationOptions
from seqkeras.values import scaling
from tests.conftest import long_fixture, others_long
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refusal,
    refused_files,
    scores_of,
    scores_of_both,
)

TINY = (
    "--units 7 --embedding-dim 6 --num-heads 3 --hops 2 --learning-rate 0.03 --batch-size 5".split()
)
OF_TAGS = [word for word in TINY if word not in ("--hops", "2")]
LABELS = ("rest", "walk")
SENSORS = ["--numbers", "x,y,z", "--series-column", "series"]


def recording(place, generator):
    """Frames of a sensor in its own units, and a label for each: a wave on x where one walks."""
    length = 5 + place * 7 % 13
    steps = np.arange(length)
    walks = (steps // 3 + place) % 2 == 1
    frames = generator.normal([300, -5, 0.01], [1, 3, 0.002], (length, 3))
    frames[:, 0] += 40 * walks
    return frames.astype("float32"), [LABELS[int(walk)] for walk in walks]


def recordings(count, seed=0):
    """Recordings with a label for each frame, and one for each: whether x is high."""
    generator = np.random.default_rng(seed)
    found = [recording(place, generator) for place in range(count)]
    for place, (frames, _) in enumerate(found):
        frames[:, 1] += 30 * (place % 2)
    return [(frames, tags, LABELS[place % 2]) for place, (frames, tags) in enumerate(found)]


def as_rows(path, found, missing=()):
    """A CSV file with a row for each frame; x of some rows is not there."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["series", "time", "x", "y", "z", "label", "tag"])
        for place, (frames, tags, label) in enumerate(found):
            for time, (frame, tag) in enumerate(zip(frames.tolist(), tags)):
                if (place, time) in missing:
                    frame[0] = ""
                writer.writerow([f"s{place}", time, *frame, label, tag])
    return str(path)


def as_files(folder, found):
    """A table of .npy files."""
    folder.mkdir()
    lines = ["file,label,tag"]
    for place, (frames, tags, label) in enumerate(found):
        np.save(folder / f"{place}.npy", frames)
        np.save(folder / f"{place}-tags.npy", np.array(tags))
        lines.append(f"{place}.npy,{label},{place}-tags.npy")
    (folder / "table.csv").write_text("\n".join(lines))
    return str(folder / "table.csv")


def as_arrays(path, found, for_each_frame):
    """One .npz file."""
    lengths = np.array([len(frames) for frames, _, _ in found])
    frames = np.zeros((len(found), lengths.max(), 3), "float32")
    labels = np.zeros((len(found), lengths.max()), "U4")
    for place, (own, tags, _) in enumerate(found):
        frames[place, : len(own)], labels[place, : len(own)] = own, tags
    if not for_each_frame:
        labels = np.array([label for _, _, label in found])
    np.savez(path, frames=frames, labels=labels, lengths=lengths)
    return str(path)


@long_fixture
def sensors(tmp_path_factory):
    """A run on rows of which some lack a number, its bundle, and its file."""
    folder = tmp_path_factory.mktemp("sensors")
    file = as_rows(folder / "sensors.csv", recordings(41), {(0, 0), (3, 2), (3, 3)})
    options = [*SENSORS, *TINY, "--passes", "12", "--held-out", "0.2"]
    printed("classification", file, "--out", folder / "run", *options)
    exported(folder)
    return folder


def features(frames, settings):
    """What the model reads of numbers with NaN, by a loop: the last number that was there, or the
    median, and whether one is missing."""
    columns = settings["rows"]["columns"]
    told = [place for place, column in enumerate(columns) if column["may_be_missing"]]
    last, found = [column["fill"] for column in columns], []
    for frame in frames:
        last = [old if np.isnan(new) else new for new, old in zip(frame, last)]
        scaled = [(x - own["mean"]) / own["deviation"] for x, own in zip(last, columns)]
        found.append([*scaled, *(float(np.isnan(frame[place])) for place in told)])
    return np.array(found, "float32")


def test_a_users_rows_are_learned_and_the_bundle_answers_as_keras(sensors, capsys):
    scores = scores_of(sensors / "run")
    assert scores["examples"] == 8 and scores["accuracy"] == 1.0
    settings = json.loads((sensors / "run" / "run.json").read_text())["settings"]
    model = keras.models.load_model(sensors / "run" / "model.keras", compile=False)
    classify = serving.load(sensors / "bundle")
    new = recordings(7, seed=1)
    new[2][0][0, 0] = new[2][0][4, 0] = np.nan
    file = as_rows(sensors / "new.csv", new, {(2, 0), (2, 4)})
    answers = classify([frames for frames, _, _ in new])
    for (frames, _, label), answer in zip(new, answers, strict=True):
        given = {"frames": features(frames, settings)[None], "lengths": np.array([len(frames)])}
        expected = keras.ops.convert_to_numpy(keras.ops.softmax(model(given)))[0]
        found = [answer.scores[name] for name in settings["labels"]]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert answer.labels == (label,)
    capsys.readouterr()
    assert serve(["predict", str(sensors / "bundle"), file]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = [[f"s{place}", label] for place, (_, _, label) in enumerate(new)]
    assert [line.split()[:2] for line in lines] == expected


def test_a_number_that_is_missing_or_none_is_said_by_the_bundle(sensors):
    classify = serving.load(sensors / "bundle")
    rows = ({"x": "301", "y": "", "z": "0.01", "more": "a"}, {"x": None, "y": 3, "z": 0.0})
    numbers = np.array([[301, np.nan, 0.01], [np.nan, 3, 0]], "float32")
    assert classify(rows).scores == pytest.approx(classify(numbers).scores, abs=1e-6)
    message = r"^Classify: frames, row 2: 'x' must be a number; received 'far'"
    with pytest.raises(ValueError, match=message):
        classify((rows[0], rows[1] | {"x": "far"}))
    with pytest.raises(ValueError, match="frames has no 'z'; it has x, y"):
        classify(({"x": 1, "y": 2},))


def test_run_and_bundle_have_the_same_score_on_a_file(sensors, tmp_path):
    data = as_rows(tmp_path / "test.csv", recordings(11, seed=2), {(5, 1)})
    scores = scores_of_both(sensors, data)
    assert (scores["examples"], scores["accuracy"], scores["macro_f1"]) == (11, 1.0, 1.0)


@pytest.mark.parametrize(
    ("form", "options", "column"),
    [
        ("arrays", {}, "labels"),
        ("rows", {"numbers": ("x",), "series_column": "name"}, "label"),
        ("table", {"frames_column": "file"}, "label"),
    ],
)
def test_labels_and_recordings_of_two_spellings_are_told(form, options, column, tmp_path, capsys):
    labels, file = ["1.10", "1.1", "2"], tmp_path / ("all.npz" if form == "arrays" else "all.csv")
    np.save(tmp_path / "a.npy", np.zeros((5, 2)))
    if form == "arrays":
        np.savez(file, frames=np.zeros((3, 5, 2)), labels=np.array(labels))
    elif form == "rows":
        file.write_text("name,x,label\n7,0,1.1\n7.0,1,1.1\n8,2,1.1\n9,3,1.10")
    else:
        file.write_text("\n".join(["file,label", *(f"a.npy,{label}" for label in labels)]))
    options = ClassificationOptions(file=str(file), **options)
    recordings = Frames(options, "label", for_each_frame=False).read(str(file))
    told = capsys.readouterr().out
    assert {recording.target for recording in recordings} <= {"1.1", "2"}
    assert f"'1.1', '1.10' of {column!r} are read as one, '1.1'" in told
    assert ("'7', '7.0' of 'name' are read as one, '7'" in told) == (form == "rows")


def test_scaling_is_learned_of_training_rows_alone(tmp_path):
    found = recordings(19)
    options = {"numbers": ("x", "y", "z"), "series_column": "series", "batch_size": 5}
    records = []
    for factor in (1, 1000):
        file = as_rows(tmp_path / f"{factor}.csv", found)
        task = ClassificationOptions(file=file, **options).make()
        train, validation = task.reading.read()
        record = task.reading.record(train, {})
        numbers = np.concatenate([example.numbers for example in train]).astype("float64")
        columns = task.reading.frames.rows.columns
        means, deviations = zip(*((column.mean, column.deviation) for column in columns))
        np.testing.assert_allclose(means, numbers.mean(axis=0), rtol=1e-5)
        np.testing.assert_allclose(deviations, numbers.std(axis=0), rtol=1e-5)
        places = {example.where.partition(" ")[2] for example in validation}
        for place, (frames, _, _) in enumerate(found):
            if f"series 's{place}'" in places:
                frames *= 1000
        records.append(record)
    assert len(places) == 2 and records[0] == records[1]


def test_numbers_that_people_write_are_frames_in_training_run_and_bundle(tmp_path):
    lines = [f'{place},"{1000 + place:,}",{place % 2},"{place},5 %"' for place in range(12)]
    (tmp_path / "x.csv").write_text("\n".join(["series,x,label,y", *lines]) + "\n")
    given = {"numbers": ("x", "y"), "series_column": "series", "batch_size": 1}
    given |= {"decimal_point": ("x",), "decimal_comma": ("y",)}
    task = ClassificationOptions(file=str(tmp_path / "x.csv"), **given).make()
    train, validation = task.reading.read()
    settings = task.reading.record(train, {})["settings"]
    again = dataclasses.replace(task.options, numbers=(), decimal_point=(), decimal_comma=())
    frames = Frames(again, "label", False).of_settings(settings)
    for examples in (train + validation, frames.read(str(tmp_path / "x.csv"))):
        found = np.concatenate(sorted((each.numbers for each in examples), key=np.min))
        np.testing.assert_allclose(found[:, 0], np.arange(1000, 1012))
        np.testing.assert_allclose(found[:, 1], np.arange(12) / 100 + 0.005, rtol=1e-5)
    window, _ = Rows(task.reading.frames.rows.columns).window((("1,011", "11,5 %"),), "frames")
    columns = task.reading.frames.rows.columns
    read = [column.unscaled(number) for column, number in zip(columns, window[0])]
    np.testing.assert_allclose(read, [1011, 0.115], rtol=1e-5)


@pytest.mark.parametrize(("factor", "level"), [(1e-12, 0), (1e20, 0), (10, 1e4)])
def test_arrays_of_any_size_are_scaled_alike(factor, level, tmp_path):
    """What the first layer reads of them."""
    frames = np.random.default_rng(0).normal(size=(16, 5, 2))
    labels = np.array(["a", "b"] * 8)
    found = []
    for name, given in (("plain", frames), ("other", level + factor * frames)):
        np.savez(tmp_path / f"{name}.npz", frames=given, labels=labels)
        file = str(tmp_path / f"{name}.npz")
        task = ClassificationOptions(file=file, batch_size=4).make()
        train, _ = task.reading.read()
        task.reading.record(train, {})
        inputs, _ = task.reading.frames.inputs(train, 5)
        read = scaling(task.reading.frames.mean, task.reading.frames.deviation)
        found.append(read(inputs["frames"][range(len(train))]))
    np.testing.assert_allclose(found[1], found[0], atol=2e-4)
    assert found[0].std() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("factor", "level", "message"),
    [
        (10, 1e9, r"the numbers 0 of frames vary by .* about .*: .*; subtract 1e\+09 from"),
        (1e-35, 0, "the numbers 0 of frames vary by .*e-3., which float32 does not hold; write t"),
    ],
)
def test_arrays_that_float32_does_not_tell_apart_are_refused(factor, level, message, tmp_path):
    frames = level + factor * np.random.default_rng(0).normal(size=(16, 5, 2))
    np.savez(tmp_path / "a.npz", frames=frames, labels=np.array(["a", "b"] * 8))
    task = ClassificationOptions(file=str(tmp_path / "a.npz"), batch_size=4).make()
    train, _ = task.reading.read()
    with pytest.raises(RunError, match=message):
        task.reading.record(train, {})


@pytest.mark.parametrize("form", others_long(["files", "arrays", "rows"]), ids=lambda form: form)
def test_each_form_of_tagged_frames_is_learned_and_served(form, tmp_path):
    found, test = recordings(31), recordings(7, seed=1)
    forms = {
        "files": (lambda name, own: as_files(tmp_path / name, own), ["--frames-column", "file"]),
        "arrays": (lambda name, own: as_arrays(tmp_path / f"{name}.npz", own, True), []),
        "rows": (lambda name, own: as_rows(tmp_path / f"{name}.csv", own), SENSORS),
    }
    write, options = forms[form]
    sizes = [*OF_TAGS, "--max-length", "7", "--passes", "12", "--encoder", "convolution"]
    printed("tagging", write("train", found), "--out", tmp_path / "run", *options, *sizes)
    scores = scores_of(tmp_path / "run")
    assert scores["accuracy"] > 0.95 and {*scores["by_label"]} == {*LABELS}
    data, bundle = write("test", test), exported(tmp_path)
    scores = evaluated(tmp_path / "run", data)
    assert evaluated(bundle, data, *options) == scores and scores["accuracy"] > 0.95
    assert scores["frames"] == sum(len(frames) for frames, _, _ in test)
    frames, tags, _ = test[0]
    if form != "rows":
        answer = serving.load(bundle)(frames[:7])
        right = [word.tag == tag for word, tag in zip(answer.words, tags[:7], strict=True)]
        assert np.mean(right) > 0.8


@pytest.mark.long
@pytest.mark.parametrize("encoder", ["gru", "simple_rnn", "qrnn", "transformer"])
def test_every_encoder_reads_frames_and_leaves(encoder, tmp_path):
    file = as_arrays(tmp_path / "train.npz", recordings(41), False)
    options = [*TINY, "--encoder", encoder, "--num-layers", "2", "--passes", "15", "--dropout", "0"]
    printed("classification", file, "--out", tmp_path / "run", *options)
    assert scores_of(tmp_path / "run")["accuracy"] == 1.0
    exported(tmp_path)


def test_frames_over_the_limit_are_cut_and_the_files_of_a_table_may_not_change(tmp_path):
    file, run = as_files(tmp_path / "data", recordings(13)), tmp_path / "run"
    options = ["--frames-column", "file", *TINY, "--passes", "1", "--max-length", "11"]
    command = ["classification", file, *options, "--encoder", "convolution", "--causal", "true"]
    lines = printed(*command, "--out", run)
    assert sum(" recordings of more than 11 frames are cut" in line for line in lines) == 1
    assert "finished already" in printed(*command, "--out", run)[-1]
    np.save(tmp_path / "data" / "3.npy", np.ones((5, 3)))
    assert "began with another content of" in refusal(*command, out=run)
    (tmp_path / "data" / "3.npy").unlink()
    assert f"{file}, line 5: 3.npy: no such file." in refusal(*command, out=run)


HEAD = "series,x,label\n"
test_rows_that_nothing_can_be_learned_from_get_one_line = refused_files(
    "classification",
    "rows.csv",
    (f"{HEAD}a,1,u\na,2,v\n", "", "line 3: the label is 'v' and 'u' before; the rows of series 'a"),
    (f"{HEAD}a,1,u\nb,far,v\n", "", "line 3: 'x' must be a number; received 'far'"),
    (f"{HEAD}a,1,u\nb,2,\n", "", "line 3: 'label' is empty"),
    (f"{HEAD}a,1,u\nb,1,v\nc,1,v\n", "", "'x' is 1 in all 2 training rows: nothing can be learned"),
    (f"{HEAD}a,1,u\nb,2\n", "", "line 3: expected 3 fields, as in the header; found 2."),
    (f"{HEAD}a,1,u\n", "--numbers x,y", "there is no column 'y'; there are 'series', 'x', 'label'"),
    (f"{HEAD}a,1,u\nb,2,u\n", "", "'label' must hold two labels at least"),
    options="--numbers x --series-column series --batch-size 1",
)
test_options_that_do_not_go_together_get_one_line = refused_files(
    "classification",
    "rows.csv",
    (HEAD, "--numbers x", "--numbers needs --series-column"),
    (HEAD, "--numbers x --frames-column file", "are two forms; choose one"),
    (HEAD, "--series-column s", "--series-column needs --numbers"),
    (HEAD, "--frames-column file --pair-column b", "--pair-column is of texts"),
    status=2,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"1.npy": np.full((4, 3), np.inf)}, "line 3: 1.npy: number 0 of frame 0 is inf; put a n"),
        ({"1.npy": np.ones((4, 2))}, "line 3: 1.npy has frames of 2 numbers; the first file, of 3"),
        ({"1.npy": np.ones((4, 3, 2))}, "1.npy must have shape (frames, numbers); received (4, 3"),
        ({"1.npy": np.array(["a"])}, "1.npy: frames must be numbers; received <U1."),
        ({"1.npy": b"no array"}, "line 3: 1.npy: must be arrays that NumPy saved: it is neither a"),
        ({"1-tags.npy": np.array(["rest"])}, "line 3: 1-tags.npy must have 12 labels, one for e"),
        ({"1-tags.npy": np.ones(12)}, "1-tags.npy: labels must be texts or integers; received fl"),
    ],
)
def test_a_file_of_a_table_that_can_not_be_used_gets_one_line(change, message, tmp_path):
    table = as_files(tmp_path / "data", recordings(9))
    for name, content in change.items():
        if isinstance(content, bytes):
            (tmp_path / "data" / name).write_bytes(content)
        else:
            np.save(tmp_path / "data" / name, content)
    given = ["tagging", table, "--frames-column", "file", "--batch-size", 1]
    assert message in refusal(*given, out=tmp_path / "run")


ONES, THREE = np.ones((3, 5)), np.arange(3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (None, "a.npz: must be arrays that NumPy saved: it is neither a .npz nor a .npy f"),
        ({"x": np.ones(3)}, "expected the arrays 'frames' and 'labels'; found x."),
        ({"frames": np.ones(3), "labels": THREE}, "'frames' must have shape (recordings, fra"),
        ({"frames": ONES, "labels": np.arange(4)}, "'labels' must have shape (3,), one"),
        (
            {"frames": ONES, "labels": THREE, "lengths": 2 * THREE + 5},
            "must be 3 integers from 1 to",
        ),
        ({"frames": np.array([[None]]), "labels": THREE}, "must be arrays that NumPy saved"),
    ],
)
def test_arrays_that_can_not_be_used_get_one_line(arrays, message, tmp_path):
    file = tmp_path / "a.npz"
    if arrays is None:
        file.write_text("text,label")
    else:
        np.savez(file, **arrays)
    assert message in refusal("classification", file, out=tmp_path / "run")


CAUSAL = {
    "lstm": ["--encoder", "lstm"],
    "convolution": ["--encoder", "convolution"],
    "transformer": ["--encoder", "transformer", "--attention-window", "5"],
    "qrnn": ["--encoder", "qrnn"],
}


@pytest.mark.long
@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_classifier_streams_and_learns_to_answer_early(tmp_path, name):
    file = as_rows(tmp_path / "sensors.csv", recordings(41), {(0, 0), (3, 2), (3, 3)})
    options = [*SENSORS, *TINY, "--passes", "12", "--held-out", "0.2", "--causal", "true"]
    options += ["--answer-every", "3", *CAUSAL[name]]
    printed("classification", file, "--out", tmp_path / "run", *options)
    assert 1 <= scores_of(tmp_path / "run")["delay_frames"] < 4
    classify = serving.load(exported(tmp_path, stream=True), threads=1)
    right = 0
    for frames, _, label in recordings(7, seed=1):
        rows = [dict(zip("xyz", frame)) for frame in frames.tolist()]
        rows[2]["x"] = None
        answers = classify.open().push(rows)
        whole = classify(tuple(rows))
        assert answers[-1].scores == pytest.approx(whole.scores, abs=1e-4)
        right += sum(answer.labels == (label,) for answer in answers[2:]) / len(answers[2:])
    assert right / 7 > 0.9


def test_a_causal_tagger_streams(tmp_path):
    file = as_rows(tmp_path / "sensors.csv", recordings(31))
    options = [*SENSORS, *OF_TAGS, "--passes", "8", "--held-out", "0.2", "--causal", "true"]
    printed("tagging", file, "--out", tmp_path / "run", *options)
    assert 1 <= scores_of(tmp_path / "run")["delay_frames"] < 2
    tag = serving.load(exported(tmp_path, stream=True), threads=1)
    frames, tags, _ = recordings(3, seed=1)[2]
    rows = [dict(zip("xyz", frame)) for frame in frames.tolist()]
    stream = tag.open()
    words = [stream.push([row])[0] for row in rows]
    assert [word.tag for word in words] == [word.tag for word in tag(tuple(rows)).words] == tags
    assert [(word.start, word.end) for word in words] == [(n, n + 1) for n in range(len(rows))]
