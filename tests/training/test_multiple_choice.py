"""Multiple choice of a user's file: what it learns, leaves and refuses."""

import json

import pytest

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.serving.__main__ import main as serve
from seqkeras.training.__main__ import main
from tests.conftest import long_fixture
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
    assert main(["multiple-choice", *files, *encoder, *SMALL, "--out", str(folder / "run")]) == 0
    export(folder / "run", folder / "bundle", options=ExportOptions(saved_models=False))
    return folder


def test_questions_of_different_numbers_of_choices_are_learned_together(trained):
    scores = json.loads((trained / "run" / "scores.json").read_text())
    assert scores["examples"] == 41 and scores["accuracy"] > 0.9
    assert {*scores["by_choices"]} == {"2", "3", "4"}
    assert 1 / 4 < scores["chance"] < 1 / 2
    assert refusals_of_run(trained / "run") == []
    rows = (trained / "run" / "history.csv").read_text().splitlines()
    assert len(rows) > 1 and "accuracy" in rows[0]


def test_the_bundle_chooses_what_the_run_chooses(trained, tmp_path):
    exam(tmp_path / "test.csv", 53, 2)
    found = []
    for name in ("run", "bundle"):
        out = tmp_path / f"{name}.json"
        asked = ["--data", str(tmp_path / "test.csv"), "--out", str(out)]
        assert main(["evaluate", str(trained / name), *asked]) == 0
        found.append(json.loads(out.read_text()))
    assert found[0] == found[1] and found[0]["examples"] == 53
    pipeline = serving.load(trained / "bundle")
    answer = pipeline(("where does ada live ?", ["bo", "cy", "new york"]))
    assert (answer.text, answer.index) == ("new york", 2)


def test_four_lines_become_a_served_answer(trained, tmp_path, capsys):
    lines = [
        {"text": "where does ada live ?", "choices": ["oslo", "bo"], "answer": 0},
        {"text": "a dog ran by ?", "choices": ["oslo", "bo", "zurich"], "answer": 1},
    ] * 2
    path, run, bundle = tmp_path / "exam.jsonl", tmp_path / "run", tmp_path / "bundle"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    options = ["--pretrained", str(trained / "run"), "--batch-size", "2", "--passes", "2"]
    asked = [str(path), "--validation", str(path), *options, "--looks", "1", "--out", str(run)]
    assert main(["multiple-choice", *asked]) == 0
    export(run, bundle, options=ExportOptions(saved_models=False))
    capsys.readouterr()
    assert serve(["predict", str(bundle), "where does ada live ?\tbo\toslo"]) == 0
    text, score = capsys.readouterr().out.split("\t")
    assert text in ("bo", "oslo") and 0.5 < float(score) <= 1  # the head is new


def test_columns_of_any_names_are_read(trained, tmp_path):
    path = tmp_path / "own.csv"
    rows = ["asked,one,two,right", *["where does ada live ?,oslo,bo,one"] * 12]
    path.write_text("\n".join(rows), encoding="utf-8")
    names = "--text-column asked --choice-columns one,two --answer-column right".split()
    out = tmp_path / "scores.json"
    asked = ["evaluate", str(trained / "bundle"), "--data", str(path), "--out", str(out)]
    assert main([*asked, *names]) == 0
    scores = json.loads(out.read_text())
    assert scores["accuracy"] == 1 and scores["most_frequent_place"] == 1


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        ([], 2, "--pretrained is missing: the folder of the encoder"),
        (["--pretrained", "ENCODER", "--batch-size", "30"], 1, "fewer than the 30 of a batch"),
        (["--pretrained", "ENCODER", "--max-length", "99"], 1, "has 37 positions"),
        (
            ["--pretrained", "ENCODER", "--choice-columns", "x,y"],
            1,
            "'answer'; --text-column chooses it.",
        ),
    ],
)
def test_what_can_not_be_trained_is_one_line(trained, tmp_path, capsys, arguments, status, message):
    given = [str(trained / "encoder") if own == "ENCODER" else own for own in arguments]
    asked = [exam(tmp_path / "train.csv", 20), *given, "--out", str(tmp_path / "run")]
    assert main(["multiple-choice", *asked]) == status
    [line] = capsys.readouterr().err.splitlines()
    assert message in line and not (tmp_path / "run").exists()


def test_a_row_that_can_not_be_used_names_its_line_or_is_left_out(trained, tmp_path, capsys):
    path = tmp_path / "test.csv"
    exam(path, 9)
    path.write_text(path.read_text() + "a dog ran by ?,bo,,,,A\n", encoding="utf-8")
    asked = ["evaluate", str(trained / "bundle"), "--data", str(path)]
    assert main(asked) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert f"{path}, line 11: there must be two choices at least; found 1." in line
    assert main([*asked, "--skip-bad", "true"]) == 0
    assert "1 row is left out; the first: " in capsys.readouterr().out
