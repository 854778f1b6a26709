"""A model begins with the weights of another run, whose vocabulary is another one."""

import dataclasses

import keras
import numpy as np
import pytest

from seqkeras.models import Bert, ClassificationHead, RNNSeq2Seq, WithHeads
from seqkeras.runs import RunError, RunFiles
from seqkeras.schedules import LinearDecay
from seqkeras.tokenizers import CharacterTable
from seqkeras.training.first_weights import take_rows, take_weights

LABELS = ["good", "bad"]


def classifier(run, units=5):
    """Embeddings of one vocabulary, and logits of the labels."""
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    hidden = keras.layers.Embedding(len(run.tokenizers["text"]), units)(token_ids)
    hidden = keras.layers.GlobalAveragePooling1D()(keras.layers.Dense(units)(hidden))
    logits = keras.layers.Dense(len(run.record.settings["labels"]))(hidden)
    return keras.Model({"token_ids": token_ids}, logits)


def files(characters, labels):
    return RunFiles.of(
        "run",
        [{"input": characters[:2], "target": labels[0]}],
        {"text": CharacterTable.learn([characters])},
        pipeline="Classify",
        limits={"source_length": 7},
        settings={"labels": labels, "pairs": False},
        task="classification",
    )


@pytest.fixture
def other(tmp_path):
    """A run of "abc", its folder and its model."""
    run = files("abc", LABELS)
    model = classifier(run)
    (tmp_path / "other").mkdir()
    run.write(tmp_path / "other", model, {})
    return tmp_path / "other", model


def test_rows_of_what_both_know_are_taken_and_what_is_new_keeps_its_own(other, capsys):
    folder, there = other
    run = files("xbcaz", ["mixed", "bad", "good"])
    model = classifier(run)
    first = [weight.copy() for weight in model.get_weights()]
    take_weights(model, classifier, run, folder)
    tables = run.tokenizers["text"], CharacterTable.learn(["abc"])
    for character in "abc":
        np.testing.assert_array_equal(
            model.get_weights()[0][tables[0].id_of(character)],
            there.get_weights()[0][tables[1].id_of(character)],
        )
    for character in "xz":
        row = tables[0].id_of(character)
        np.testing.assert_array_equal(model.get_weights()[0][row], first[0][row])
    for place in (1, 2):  # a layer that no vocabulary has a part in
        np.testing.assert_array_equal(model.get_weights()[place], there.get_weights()[place])
    kernel, bias = model.get_weights()[3:]
    np.testing.assert_array_equal(kernel[:, [2, 1]], there.get_weights()[3])
    np.testing.assert_array_equal(kernel[:, 0], first[3][:, 0])
    np.testing.assert_array_equal(bias[[2, 1]], there.get_weights()[4])
    assert "7 of 9 text entries, 2 of 3 labels entries are known there" in capsys.readouterr().out


def test_what_counts_steps_begins_anew():
    falling = LinearDecay(1.0, 0.1, 0.5)

    def build(run, teacher_forcing=falling):
        sizes = len(run.tokenizers["text"]), len(run.tokenizers["text"]), 3, 4, 5
        model = RNNSeq2Seq.bahdanau(*sizes, teacher_forcing=teacher_forcing)
        model.build(None)
        return model

    run = files("abc", LABELS)
    known = {"text": (np.arange(7),) * 2, "labels": (np.arange(2),) * 2}
    for other in (build(run), build(run, 1.0)):
        model = build(run)
        if other.decoder.teacher_forcing.weights:
            other.decoder.teacher_forcing.training_step.assign(9)
        take_rows(model, build, run, other, known, "other")
        assert float(model.decoder.teacher_forcing.training_step) == 0
        for variable, taken in zip(model.trainable_weights, other.trainable_weights, strict=True):
            np.testing.assert_array_equal(variable.numpy(), taken.numpy())


def test_a_vocabulary_of_the_same_size_is_not_taken_by_its_places(other):
    folder, there = other
    run = files("acb", LABELS[::-1])
    model = classifier(run)
    take_weights(model, classifier, run, folder)
    np.testing.assert_array_equal(model.get_weights()[4], there.get_weights()[4][::-1])


def wider(run):
    return classifier(run, units=6)


def deeper(run):
    model = classifier(run)
    return keras.Model(model.inputs, keras.layers.Dense(2)(model.outputs[0]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (wider, r"has the shape \(7, 5\); .* of this training has \(7, 6\)"),
        (deeper, "its model has 5 weights; this training has 7"),
    ],
)
def test_a_model_of_other_sizes_or_layers_is_refused(build, message, other):
    run = files("abc", LABELS)
    way_out = "Give the sizes that stand in .*other/options.json.$"
    with pytest.raises(RunError, match=f"{message}. {way_out}"):
        take_weights(build(run), build, run, other[0])


@pytest.mark.parametrize("is_named", [True, False])
def test_an_encoder_of_other_sizes_may_be_taken_by_its_own(is_named):
    def build(run, num_layers=1):
        encoder = Bert(len(run.tokenizers["text"]), 8, num_layers, 2, 12, max_length=7)
        model = WithHeads(encoder, {"labels": ClassificationHead(2)})
        model.build(None)
        return model

    run = files("abc", LABELS)
    known = {"text": (np.arange(7),) * 2, "labels": (np.arange(2),) * 2}
    with pytest.raises(RunError, match="this training has .* runs/other/options.json") as error:
        deeper = build(run, 2)
        take_rows(deeper, lambda run: build(run, 2), run, build(run), known, "runs/other", is_named)
    assert ("or --pretrained runs/other in place of --start-from" in str(error.value)) is is_named


def test_a_run_of_another_task_is_refused_with_both_tasks(other):
    folder, _ = other
    run = files("abc", LABELS)
    record = dataclasses.replace(run.record, task="translation", settings={"pairs": False})
    message = "a run of classification has text, labels; this training of translation has text."
    with pytest.raises(RunError, match=message):
        take_weights(None, None, dataclasses.replace(run, record=record), folder)
