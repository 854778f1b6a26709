"""Where a Transformer's tokens stand, from --position-kind to an answer that is served."""

import subprocess
import sys

import numpy as np
import pytest
from keras import tree

from seqkeras import serving
from seqkeras.models import Bert
from seqkeras.models.limits import most_tokens
from seqkeras.tokenizers import read_tokenizer
from seqkeras.training.options.positions import POSITION_KINDS
from seqkeras.training.parts.pretrained import Pretrained
from tests.arrays import numbers, randomize
from tests.conftest import CHECKOUT
from tests.training import test_bert_pretraining as bert
from tests.training import test_frames as frames
from tests.training import test_language_model as language
from tests.training import test_tagging as tagging
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refusal,
    refused_options,
    scores_of_both,
)
from tests.training.test_causal_forecasting import COLUMNS, SIZES, arguments, hourly
from tests.training.test_transformer_options import (
    ENCODER,
    LANGUAGE,
    SHORT,
    continued,
    model_of,
    proved_generator,
    proved_translator,
    reviews,
    tuned_to_answer,
)

NOT_USUAL = {"gpt": ["bias", "relative", "sinusoid"], "other": ["bias", "relative", "learned"]}
CONTEXT = 23  # of LANGUAGE


@pytest.mark.long
@pytest.mark.parametrize("window", [[], ["--attention-window", 4]], ids=["whole", "window"])
@pytest.mark.parametrize("kind", NOT_USUAL["gpt"])
def test_a_gpt_reads_past_its_windows_and_is_tuned_to_answer(kind, window, tmp_path):
    file = language.text_file(tmp_path / "text.txt")
    options = [*LANGUAGE, *SHORT, *window, "--position-kind", kind]
    printed("language-model", file, *options, "--out", tmp_path / "run")
    model = model_of(tmp_path / "run")
    assert model.config["positions"] == POSITION_KINDS[kind] and most_tokens(model) is None
    of_run, of_bundle = (evaluated(each, file) for each in (tmp_path / "run", exported(tmp_path)))
    assert of_run == pytest.approx(of_bundle, rel=1e-5)
    tokenizer = read_tokenizer(tmp_path / "run/tokenizer/text.json")
    prompt = ("the old house is here " * 4)[: 2 * CONTEXT]
    answer = serving.load(exported(tmp_path), threads=1)(prompt, max_new_tokens=8)
    assert answer.text == continued(model, tokenizer, tokenizer.encode(prompt), 8)
    tuned = tuned_to_answer(tmp_path, "--mask", "prefix", more=" is where it was")
    proved_generator(tuned, ["the red book is where it was", "the old"])


@pytest.mark.long
@pytest.mark.parametrize("kind", NOT_USUAL["other"])
def test_a_translator_answers_as_the_whole_model_does(kind, tmp_path):
    model = proved_translator(tmp_path, "--position-kind", kind)
    assert model.options["positions"] == kind


@pytest.mark.long
@pytest.mark.parametrize("kind", NOT_USUAL["other"])
def test_a_classifier_of_texts_answers_as_its_run_does(kind, tmp_path):
    file = reviews(tmp_path / "reviews.csv")
    options = [*ENCODER, *SHORT, "--max-length", 17, "--position-kind", kind]
    printed("classification", file, *options, "--out", tmp_path / "run")
    model = model_of(tmp_path / "run")
    tokenizer = read_tokenizer(tmp_path / "run/tokenizer/text.json")
    assert most_tokens(model) == (17 if kind == "learned" else None)
    token_ids = tokenizer.analyze("so so fine it is").token_ids
    logits = numbers(model({"token_ids": np.array([token_ids])}))[0]
    expected = sorted(np.exp(logits) / np.exp(logits).sum())
    bundle = exported(tmp_path, precisions=["int8"])
    for precision, most in (("float32", 1e-5), ("int8", 0.02)):
        answer = serving.load(bundle, threads=1, precision=precision)("so so fine it is")
        assert sorted(answer.scores.values()) == pytest.approx(expected, abs=most)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["relative", "bias"])
def test_a_classifier_of_frames_streams_where_distances_count(kind, tmp_path):
    file = frames.as_rows(tmp_path / "sensors.csv", frames.recordings(19))
    options = [*frames.SENSORS, *frames.TINY, "--passes", 2, "--causal", "true"]
    options += ["--encoder", "transformer", "--attention-window", 5, "--position-kind", kind]
    printed("classification", file, *options, "--out", tmp_path / "run")
    classify = serving.load(exported(tmp_path, stream=True), threads=1)
    for recording, *_ in frames.recordings(3, seed=1):
        rows = [dict(zip("xyz", frame)) for frame in recording.tolist()]
        stream = classify.open()
        answers = [stream.push([row])[-1] for row in rows]
        whole = classify(tuple(rows))
        assert answers[-1].scores == pytest.approx(whole.scores, abs=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("kind", NOT_USUAL["gpt"])
def test_a_bert_reads_past_its_rows_fills_masks_and_is_tuned(kind, tmp_path):
    file = bert.text_file(tmp_path / "text.txt")
    place = bert.TINY.index("--positions")
    options = [*bert.TINY[:place], *bert.TINY[place + 2 :], "--position-kind", kind, *SHORT]
    printed("bert-pretraining", file, *options, "--out", tmp_path / "run")
    model = model_of(tmp_path / "run")
    assert model.encoder.config["positions"] == POSITION_KINDS[kind] and most_tokens(model) is None
    of_run, of_bundle = (evaluated(each, file) for each in (tmp_path / "run", exported(tmp_path)))
    assert of_run["words_right"] == of_bundle["words_right"]
    (tmp_path / "tuned").mkdir()
    tuned = ["--pretrained", tmp_path / "run", *SHORT, "--max-length", 1024]
    file = reviews(tmp_path / "reviews.csv")
    printed("classification", file, *tuned, "--out", tmp_path / "tuned/run")
    exported(tmp_path / "tuned")
    scores_of_both(tmp_path / "tuned", file)


def tagged(folder):
    return ["tagging", tagging.sentences(folder / "train.txt", 41), *ENCODER, *SHORT]


def with_sensors(folder):
    file = frames.as_rows(folder / "sensors.csv", frames.recordings(19))
    options = [*frames.SENSORS, *frames.TINY, "--passes", 2, "--encoder", "transformer"]
    return ["classification", file, *options]


def forecast(folder):
    options = COLUMNS | SIZES | {"model": "transformer", "units": 8, "num_heads": 2, "passes": 1}
    return ["forecasting", hourly(folder / "load.csv"), *arguments(**options)]


@pytest.mark.long
@pytest.mark.parametrize("kind", NOT_USUAL["other"])
@pytest.mark.parametrize(("command_of", "most"), [(tagged, 0), (with_sensors, 0), (forecast, 1e-4)])
def test_a_bundle_has_the_scores_of_its_run(command_of, most, kind, tmp_path):
    command = command_of(tmp_path)
    printed(*command, "--position-kind", kind, "--out", tmp_path / "run")
    subjects = (tmp_path / "run", exported(tmp_path))
    of_run, of_bundle = (tree.flatten(evaluated(subject, command[1])) for subject in subjects)
    assert of_run == pytest.approx(of_bundle, rel=most, abs=0)


def test_a_student_keeps_the_biases_of_its_encoder():
    whole = Bert(17, 6, 3, 2, 11, positions="bias")
    whole.build(None)
    randomize(whole)
    kept = Pretrained("a folder", whole.config, whole.get_weights(), None).with_layers(2)
    part = Bert(**kept.config)
    part.build(None)
    part.set_weights(kept.weights)
    tables = [model.encoder.distance_bias.get_weights()[0] for model in (part, whole)]
    np.testing.assert_array_equal(*tables)


ENDLESS = "--causal reads {} without an end; choose relative or bias, or leave it out."
CAUSAL = "--position-kind sinusoid --causal true --attention-window 3"
test_a_kind_of_positions_goes_with_what_is_read = refused_options(
    "",
    (f"classification {{table}} {CAUSAL} --encoder transformer", ENDLESS.format("frames")),
    (f"forecasting {{table}} --targets a {CAUSAL} --model transformer", ENDLESS.format("series")),
    (
        "bert-pretraining {table} --position-kind bias --positions 64",
        "--positions: --position-kind bias reads any length; leave it out, or choose --positi",
    ),
)


@pytest.mark.long
def test_a_model_to_start_from_brings_its_positions(tmp_path):
    file = language.text_file(tmp_path / "text.txt")
    options = [*LANGUAGE, *SHORT, "--position-kind", "bias"]
    printed("language-model", file, *options, "--out", tmp_path / "run")
    given = ["--start-from", tmp_path / "run", "--position-kind", "relative"]
    line = refusal("language-model", file, *given, out=tmp_path / "more", status=2)
    assert "--position-kind: --start-from brings its own; leave it out." in line
    longer = ["--start-from", tmp_path / "run", "--context", 3 * CONTEXT, *SHORT]
    printed("language-model", file, *longer, "--out", tmp_path / "more")
    assert model_of(tmp_path / "more").config["positions"] == "bias"


@pytest.mark.long
def test_a_window_of_vectors_of_distances_is_trained_at_sizes_that_onednn_takes(tmp_path):
    file = tmp_path / "text.txt"
    lines = (f"the old house is here, and {n % 7} of {n % 13} live in it\n" for n in range(400))
    file.write_text("".join(lines))
    options = "--position-kind relative --attention-window 4 --max-steps 3 --looks 1".split()
    command = [sys.executable, "-m", "seqkeras", "train", "language-model", file, *options]
    command += ["--hidden-dim", "16", "--num-heads", "4", "--out", tmp_path / "run"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # and no signal: what is broken ends the process
