"""Texts that have none of the labels, from a training to what its bundle answers."""

import json
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from seqkeras import serving
from seqkeras.export.bundle import export
from seqkeras.export.run import read_run
from seqkeras.models import Bert, ClassificationHead, WithHeads
from seqkeras.runs import RunFiles
from seqkeras.training.none_of_these import Neighbours, chosen, fewest, threshold_of, with_none
from seqkeras.training.parts.text_rows import text_encoding
from seqkeras.training.tasks.classification import ClassificationOptions
from tests.arrays import floats, numbers, randomize
from tests.conftest import others_long
from tests.training.commands import (
    evaluated,
    exported,
    outcome,
    printed,
    refused_files,
    scores_of,
)
from tests.training.pretrained_folders import hugging_face_folder
from tests.training.test_frames import SENSORS, as_rows, recordings

SHORT = "--max-steps 60 --looks 1 --baselines false --none-of-these true --held-out 0.4".split()
WORDS = {"bad": ["dull", "poor"], "good": ["fine", "great"], "odd": ["weird", "strange"]}


def sentences(path, strangers=0, count=150):
    """Texts with a label, and others without one, written as "other"."""
    draw = random.Random(0)
    rows = []
    for place in range(count):
        label = sorted(WORDS)[place % 3]
        word, noun = draw.choice(WORDS[label]), draw.choice(["film", "play"])
        rows.append((f"a {word} {noun} {draw.randrange(9)}", label))
    for _ in range(strangers):
        noun = draw.choice(["train", "bus", "plane"])
        rows.append((f"when does the {noun} to oslo leave {draw.randrange(9)}", "other"))
    draw.shuffle(rows)
    lines = ["text,second,label", *(f"{text},so {text},{label}" for text, label in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("count", [18, 19, 20, 39, 101, 997])
@pytest.mark.parametrize("share", [0.05, 0.011, 0.5])
def test_a_new_example_is_taken_for_a_stranger_as_seldom_as_asked(count, share):
    """Among n + 1 examples in random order each is as likely the new one."""
    drawn = np.random.default_rng(count).normal(size=count + 1)
    alarms = [drawn[new] < threshold_of(np.delete(drawn, new), share) for new in range(count + 1)]
    assert np.mean(alarms) <= share < np.mean(alarms) + 2 / (count + 1)
    assert (np.sum(alarms) == 0) == (count < fewest(share))


def test_each_of_few_examples_is_left_out_alone():
    margins = np.concatenate([np.linspace(1, 2, 20), np.full(10, -5.0)])
    in_scope = np.arange(30) < 20
    told = chosen(margins, in_scope, in_scope, 0.05, seed=0)
    assert (told["examples"], told["told"]) == (20, 1.0)
    assert told["false_alarms"] == 0.05  # the farthest, when the others choose


def test_what_is_told_is_cross_fitted():
    draw = np.random.default_rng(0)
    in_scope = np.arange(6007) % 6 < 5
    right = draw.random(6007) < 0.8
    margins = draw.normal(size=6007) + np.where(in_scope, 2, 0)
    told = chosen(margins, in_scope, right, 0.1, seed=1)
    assert told["threshold"] == threshold_of(margins[in_scope], 0.1)
    assert (told["examples"], told["out_of_scope"]) == (np.sum(in_scope), np.sum(~in_scope))
    assert told["false_alarms"] == pytest.approx(0.1, abs=0.01)
    assert told["told"] == pytest.approx(0.764, abs=0.03)  # P(N(0, 1) < 2 - 1.2816)
    assert told["accuracy"] == pytest.approx(0.72, abs=0.02)


def functional():
    inputs = keras.Input((5,), name="frames")
    hidden = keras.layers.Dense(7, activation="tanh")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(3, name="label")(hidden))
    return model, floats(11, 5), lambda outputs: outputs


def fine_tuned():
    head = ClassificationHead(3, dropout=0.1)
    model = WithHeads(Bert(17, 6, 1, 3, 11, max_length=7), {"label": head}, pooling="mean")
    model.build()
    inputs = {"token_ids": np.arange(8).reshape(2, 4), "lengths": np.array([4, 2])}
    return model, inputs, lambda outputs: outputs["label"]


@pytest.mark.parametrize("make", [functional, fine_tuned])
def test_the_further_class_changes_no_other_logit(make):
    model, inputs, logits = make()
    randomize(model)
    before = numbers(logits(model(inputs)))
    neighbours = Neighbours.of(floats(5, 7 if make is functional else 6))
    distances = np.linspace(0, 1, 41)
    wider, head = with_none(model, "label", neighbours, distances, 0.05)
    after = numbers(logits(wider(inputs)))
    np.testing.assert_allclose(after[:, :3], before, rtol=1e-5)
    assert after.shape == (len(before), 4)
    assert float(head.threshold) == pytest.approx(0.95)
    assert np.exp(float(head.slope) * (0.5 - 0.95)) == pytest.approx(0.01)


def test_neighbours_compare_directions_within_the_longest_directions():
    rows, others = floats(203, 71, seed=1), floats(17, 71, seed=2)
    rows[:, 3] *= 9
    neighbours = Neighbours.of(rows)
    assert neighbours.examples.shape == (64, 203)
    directions = np.linalg.svd(rows.astype("float64"))[2][:64]
    pairs = [[side @ directions.T for side in sides] for sides in (rows, others)]
    known, new = (np.array([row / np.linalg.norm(row) for row in side]) for side in pairs)
    expected = [min(np.linalg.norm(one - other) for other in known) for one in new]
    np.testing.assert_allclose(neighbours.distances(others), expected, rtol=1e-6)
    np.testing.assert_allclose(neighbours.distances(rows), 0, atol=1e-6)


SIZES = "--encoder convolution --embedding-dim 8 --units 8 --hops 2 --learning-rate 0.01".split()
KINDS = [  # options of a training, in the folder of its file
    ("texts", None),  # those of the run that others read, too
    ("pairs", [*SIZES, "--pair-column", "second"]),
    ("windows", [*SIZES, "--max-length", 6, "--stride", 2]),
    ("tuned", ["--pretrained", "{folder}/bert", "--pooling", "mean", "--learning-rate", 0.001]),
    ("frames", [*SIZES, "--encoder", "lstm", *SENSORS]),
]


@pytest.mark.parametrize("kind, options", others_long(KINDS))
def test_a_bundle_answers_null_to_as_many_held_out_examples_as_asked(
    kind, options, tmp_path, request
):
    folder = tmp_path
    if kind == "texts":
        folder, _ = request.getfixturevalue("both")["far"]
    else:
        if kind == "frames":
            as_rows(tmp_path / "own.csv", recordings(70))
        else:
            sentences(tmp_path / "own.csv")
        if kind == "tuned":
            hugging_face_folder(tmp_path / "bert")
        options = [str(word).format(folder=tmp_path) for word in options]
        out = ["--out", tmp_path / "run"]
        printed("classification", tmp_path / "own.csv", *options, *SHORT, *out)
    scores = scores_of(folder / "run")
    told = scores["none_of_these"]
    assert told["asked"] == 0.05 and told["out_of_scope"] == 0 and told["told"] is None
    inputs = read_run(folder / "run").inputs
    answers = serving.load(exported(folder), threads=1)(inputs, truncate=True)
    count = sum(answer.labels == (None,) for answer in answers)
    assert count <= int(0.05 * (len(inputs) + 1)) - 1  # fewer where margins are equal
    assert scores["examples"] == len(inputs) and scores["accuracy"] <= 1 - count / len(inputs)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Folders of two runs, without and with rows that have no label, and what is printed."""
    folder = tmp_path_factory.mktemp("none")
    runs = {"far": [sentences(folder / "far.csv")]}
    runs["learned"] = [sentences(folder / "learned.csv", 40), "--none-label", "other"]
    for name, options in runs.items():
        command = ["classification", *options, *SIZES, *SHORT]
        lines = " ".join(printed(*command, "--out", folder / name / "run"))
        runs[name] = folder / name, lines
    return runs


def test_rows_without_a_label_are_no_class_and_are_told(both):
    folder, lines = both["learned"]
    scores = scores_of(folder / "run")
    assert sorted(scores["by_label"]) == sorted(WORDS)
    told = scores["none_of_these"]
    held_out = json.loads((folder / "run/validation.json").read_text())
    assert told["out_of_scope"] == sum("target" not in row for row in held_out)
    assert told["out_of_scope"] > 0 and told["told"] > 0.9
    assert f"null is the answer to {told['false_alarms']:.1%} of {told['examples']} ex" in lines
    assert f"{told['told']:.1%} of {told['out_of_scope']} examples out of scope" in lines
    assert "none of these" in (folder / "run" / "samples.txt").read_text()


def test_each_table_says_whether_null_counts(both):
    folder, lines = both["far"]
    assert "of 60 examples; null is a wrong answer" in lines
    of_model = {"methods": {"model": {"F1": 0.5}}, "formats": {"F1": ".2%"}, "learned_on": {}}
    scores = scores_of(folder / "run") | {"baselines": of_model | {"summary": "ahead"}}
    scoring = ClassificationOptions(file=str(folder.parent / "far.csv")).make().scoring
    _, with_null, *_ = scoring.shown(scores)
    assert with_null.title == "beside plain methods, before null is an answer"
    del scores["none_of_these"]
    _, without, *_ = scoring.shown(scores)
    assert without.title == "beside plain methods"


@pytest.mark.long
def test_a_run_and_its_bundle_are_scored_on_rows_without_a_label(both, tmp_path):
    data = sentences(tmp_path / "test.csv", 30)
    options = ["--none-label", "other"]
    for folder, _ in both.values():
        scores = evaluated(folder / "run", data, *options)
        assert evaluated(exported(folder), data, *options) == scores
        told = scores["none_of_these"]
        texts = [line.split(",") for line in data.read_text().splitlines()[1:]]
        answers = serving.load(folder / "bundle")([text for text, *_ in texts])
        none = {
            is_stranger: [
                answer.labels == (None,)
                for answer, (*_, label) in zip(answers, texts, strict=True)
                if (label == "other") == is_stranger
            ]
            for is_stranger in (True, False)
        }
        assert told["told"] == np.mean(none[True])
        assert told["false_alarms"] == np.mean(none[False])
        assert told["accuracy"] == scores["accuracy"] <= 1 - told["false_alarms"]
        assert scores["examples"] == told["examples"] == 150


def test_random_texts_get_the_softmax_of_the_weights_and_the_nearest_example(both):
    """In float64, of the features under the last layer."""
    folder, _ = both["far"]
    run = RunFiles.read(folder / "run")
    model = keras.models.load_model(folder / "run" / "model.keras", compile=False)
    last = model.get_layer("label")
    features = keras.Model(model.input, last.input)
    of_none = last.projection, last.examples, last.slope, last.threshold, last.share
    kernel, bias, projection, examples, slope, threshold, share = (
        numbers(weight).astype("float64") for weight in (*last.output_layer.weights, *of_none)
    )
    assert threshold == pytest.approx(scores_of(folder / "run")["none_of_these"]["threshold"])
    assert examples.shape[1] == 90
    draw = random.Random(1)
    words = [*"a film play when train 3 7".split(), *sum(WORDS.values(), [])]
    texts = [" ".join(draw.choices(words, k=draw.randrange(1, 9))) for _ in range(60)]
    texts += [f"a {word} film {place}" for place, word in enumerate(sum(WORDS.values(), []))]
    found = set()
    for text, answer in zip(texts, serving.load(exported(folder))(texts), strict=True):
        encoding = text_encoding(run, text)
        inputs = {
            "token_ids": np.array([encoding.token_ids]),
            "lengths": np.array([len(encoding.token_ids)]),
            "segment_ids": np.array([encoding.segment_ids]),
        }
        given = {tensor.name: inputs[tensor.name] for tensor in model.inputs}
        [pooled], [beside] = (numbers(each).astype("float64") for each in features(given))
        logits, projected = pooled @ kernel + bias + beside, pooled @ projection
        unit = projected / np.linalg.norm(projected)
        distance = max(np.linalg.norm(unit[:, None] - examples, axis=0).min(), 1e-6)
        far = distance - share * beside.max() - threshold
        powers = np.exp(np.append(logits, logits.max() + slope * far) - logits.max())
        *expected, none = powers / powers.sum()
        assert answer.scores == pytest.approx(dict(zip(sorted(WORDS), expected)), abs=1e-4)
        if abs(far) > 1e-4:
            assert (answer.labels == (None,)) == (far > 0)
            assert answer.score == pytest.approx(none if far > 0 else max(expected), abs=1e-4)
            found.add(far > 0)
    assert found == {True, False}


@pytest.mark.long
def test_the_label_is_empty_in_a_saved_model_on_strings(both):
    folder, _ = both["learned"]
    export(folder / "run", folder / "strings")
    texts = ["a dull film 3", "when does the bus to oslo leave 4", "a great play 1"]
    model = tf.saved_model.load(folder / "strings" / "saved_model_text" / "1")
    outputs = model.signatures["serving_default"](text=tf.constant(texts))
    answers = serving.load(folder / "strings")(texts)
    assert [answer.labels for answer in answers] == [("bad",), (None,), ("good",)]
    assert outputs["label"].numpy().tolist() == [b"bad", b"", b"good"]
    expected = [[answer.scores[label] for label in sorted(WORDS)] for answer in answers]
    np.testing.assert_allclose(outputs["scores"], expected, atol=1e-5)
    notes = (folder / "strings" / "tensorflow_serving" / "README.md").read_text()
    assert "`label` is empty where the pipeline answers `null`" in notes
    card = (folder / "strings" / "README.md").read_text()
    told = scores_of(folder / "run")["none_of_these"]
    shares = f"{told['told']:.1%} of {told['out_of_scope']} without one"
    assert f"Null is the answer to {told['false_alarms']:.1%} of " in card and shares in card


@pytest.mark.long
def test_a_teacher_of_none_teaches_its_labels(both, tmp_path):
    teacher = both["far"][0] / "run"
    options = ["--teacher", teacher, *SIZES, *SHORT, "--max-steps", 200]
    file = both["far"][0].parent / "far.csv"
    printed("classification", file, *options, "--out", tmp_path / "run")
    scores = scores_of(tmp_path / "run")
    assert scores["accuracy"] > 0.9 and scores["none_of_these"]["false_alarms"] < 0.2


@pytest.mark.long
def test_another_training_starts_from_a_run_that_answers_none(both, tmp_path):
    start = both["far"][0] / "run"
    file = both["far"][0].parent / "far.csv"
    options = [*SIZES, "--max-steps", 1, "--learning-rate", 1e-9, "--baselines", "false"]
    command = ["classification", file, *options, "--held-out", 0.4, "--start-from", start]
    printed(*command, "--out", tmp_path / "run")
    taken, model = (
        keras.models.load_model(run / "model.keras", compile=False)
        for run in (start, tmp_path / "run")
    )
    np.testing.assert_allclose(
        numbers(model.get_layer("label").kernel),
        numbers(taken.get_layer("label").output_layer.kernel),
        rtol=1e-4,
        atol=1e-6,
    )
    data = ["evaluate", tmp_path / "run", "--data", file, "--none-of-these", "true"]
    status, _, [line] = outcome(*data, "--none-label", "other")
    assert status == 1 and "--none-label: null is no answer of this model" in line


def test_a_file_without_a_label_is_not_scored(both, tmp_path):
    (tmp_path / "others.csv").write_text("text,label\n" + 3 * "the bus leaves,other\n")
    data = ["--data", tmp_path / "others.csv", "--none-label", "other"]
    status, _, [line] = outcome("evaluate", both["learned"][0] / "run", *data)
    assert status == 1 and "must hold a row with a label; all 3 rows have 'other'." in line


GOOD = "text,label\n" + 30 * "a fine film,good\na dull film,bad\n"
test_what_can_not_be_is_refused = refused_files(
    "classification",
    "own.csv",
    (GOOD, "--none-of-these true", "at least 20 held-out examples with a label must choose"),
    (GOOD, "--none-of-these true --held-out 0.5 --none-label x", "'x': must be the label of a row"),
)
test_options_that_do_not_go_together_are_refused = refused_files(
    "classification",
    "own.csv",
    (GOOD, "--false-alarms 0.1", "--false-alarms is for --none-of-these."),
    (GOOD, "--none-label x", "--none-label is for --none-of-these."),
    (GOOD, "--none-of-these true --members 2", "--members and --none-of-these exclude each other"),
    (GOOD, "--encoder tree --none-of-these true", "--none-of-these: --encoder tree has none"),
    status=2,
)
