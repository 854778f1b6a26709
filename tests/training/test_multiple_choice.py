"""Multiple choice of a user's file: what it learns, leaves and refuses."""

import pytest

from seqkeras import serving
from tests.conftest import long_fixture
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refusal,
    refused_options,
    scores_of,
    scores_of_both,
)
from tests.training.exams import exam
from tests.training.exporting import refusals_of_run
from tests.training.questions import encoder_folder

SMALL = "--batch-size 10 --learning-rate 5e-3 --looks 2 --tensorboard false".split()


@long_fixture
def trained(tmp_path_factory):
    """An encoder, a run on questions with two to four choices, and its bundle."""
    folder = tmp_path_factory.mktemp("choices")
    files = [exam(folder / "train.csv", 150), "--validation", exam(folder / "dev.csv", 41, 1)]
    encoder = ["--pretrained", encoder_folder(folder / "encoder"), "--passes", "6"]
    printed("multiple-choice", *files, *encoder, *SMALL, "--out", folder / "run")
    exported(folder)
    return folder


def test_questions_of_different_numbers_of_choices_are_learned_together(trained):
    scores = scores_of(trained / "run")
    assert scores["examples"] == 41 and scores["accuracy"] > 0.9
    assert {*scores["by_choices"]} == {"2", "3", "4"}
    assert 1 / 4 < scores["chance"] < 1 / 2
    rows = (trained / "run" / "history.csv").read_text().splitlines()
    assert len(rows) > 1 and "accuracy" in rows[0]


def test_the_bundle_chooses_what_the_run_chooses(trained, tmp_path):
    assert scores_of_both(trained, exam(tmp_path / "test.csv", 53, 2))["examples"] == 53
    answer = serving.load(trained / "bundle")(("where does ada live ?", ["bo", "cy", "new york"]))
    assert (answer.text, answer.index) == ("new york", 2)


def test_columns_of_any_names_are_read(trained, tmp_path):
    path = tmp_path / "own.csv"
    rows = ["asked,one,two,right", *["where does ada live ?,oslo,bo,one"] * 12]
    path.write_text("\n".join(rows), encoding="utf-8")
    names = "--text-column asked --choice-columns one,two --answer-column right".split()
    scores = evaluated(trained / "bundle", path, *names)
    assert scores["accuracy"] == 1 and scores["most_frequent_place"] == 1


@pytest.fixture
def given(tmp_path):
    return f"{exam(tmp_path / 'train.csv', 20)} --pretrained {encoder_folder(tmp_path / 'encoder')}"


test_a_model_needs_an_encoder = refused_options(
    "multiple-choice {table}", ("", "--pretrained is missing: the folder of the encoder")
)
test_what_can_not_be_trained_is_one_line = refused_options(
    "multiple-choice {given}",
    ("--max-length 99", "has 37 positions"),
    ("--choice-columns x,y", "'answer'; --text-column chooses it."),
    status=1,
)


def test_two_steps_make_a_run_that_export_takes(given, tmp_path):
    short = "--max-steps 2 --looks 1 --tensorboard false"
    run = tmp_path / "run"
    printed("multiple-choice", *given.split(), *short.split(), "--out", run)
    assert refusals_of_run(run) == [] and scores_of(run)
    assert len((run / "history.csv").read_text().splitlines()) == 2


def test_a_row_that_can_not_be_used_names_its_line_or_is_left_out(trained, tmp_path):
    path = tmp_path / "test.csv"
    exam(path, 9)
    path.write_text(path.read_text() + "a dog ran by ?,bo,,,,A\n", encoding="utf-8")
    asked = ["evaluate", trained / "bundle", "--data", path]
    line = refusal(*asked, out=tmp_path / "scores.json")
    assert f"{path}, line 11: there must be two choices at least; found 1." in line
    lines = printed(*asked, "--skip-bad", "true")
    assert any("1 row is left out; the first: " in line for line in lines)
