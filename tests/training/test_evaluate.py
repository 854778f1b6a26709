"""Scores of a run and of its bundle on a user's file."""

import csv
import json

import pytest

import serving
from export.bundle import ExportOptions, export
from tests.training.test_classification import TINY, sentences
from training.__main__ import main

OTHER_NAMES = ("sentence", "mark")


def renamed(path, columns=OTHER_NAMES):
    """The file with other names of its columns."""
    header, rest = path.read_text(encoding="utf-8").split("\n", 1)
    assert header.strip() == "text,label"
    path.write_text(",".join(columns) + "\n" + rest, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run, its bundle, and a file of tests with the same columns."""
    folder = tmp_path_factory.mktemp("evaluate")
    sentences(folder / "train.csv")
    sentences(folder / "test.csv", count=31)
    train, data = renamed(folder / "train.csv"), renamed(folder / "test.csv")
    arguments = ["--text-column", "sentence", "--label-column", "mark"]
    command = ["classification", train, "--validation", data, *arguments, *TINY, "--passes", "1"]
    assert main([*command, "--out", str(folder / "run")]) == 0
    export(folder / "run", folder / "bundle", options=ExportOptions(saved_models=False))
    return folder, data


def scores_of(folder, *arguments):
    out = folder / "scores.json"
    assert main(["evaluate", *map(str, arguments), "--out", str(out)]) == 0
    return json.loads(out.read_text(encoding="utf-8"))


def test_a_run_and_its_bundle_have_the_same_scores_which_are_those_of_its_answers(trained, capsys):
    folder, data = trained
    of_run = scores_of(folder, folder / "run", "--data", data)
    assert f"{folder / 'run'} on test.csv: right are " in capsys.readouterr().out
    assert scores_of(folder, folder / "bundle", "--data", data) == of_run
    with open(data, encoding="utf-8", newline="") as file:
        texts, targets = zip(*[*csv.reader(file)][1:])
    answers = [answer.labels[0] for answer in serving.load(folder / "bundle")([*texts])]
    assert of_run["accuracy"] == sum(map(str.__eq__, answers, targets)) / 31


def test_a_score_that_nobody_measures_is_refused_before_the_first_step(trained, tmp_path, capsys):
    folder, _ = trained
    columns = ["--text-column", "sentence", "--label-column", "mark"]
    common = ["classification", str(folder / "train.csv"), *columns, *TINY, "--passes", "1"]
    assert main([*common, "--best-by", "bleu", "--out", str(tmp_path / "run")]) == 1
    line = capsys.readouterr().err
    assert line.startswith("training: --best-by must be a validation score, validation examples ")
    assert not (tmp_path / "run").exists()
    assert main([*common, "--best-by", "macro_f1", "--out", str(tmp_path / "run")]) == 0


def test_the_scores_of_training_are_those_of_its_validation_file(trained):
    folder, data = trained
    scores = json.loads((folder / "run" / "scores.json").read_text())
    assert scores_of(folder, folder / "run", "--data", data) == scores


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["{folder}", "--data", "{data}"], 1, "no run folder, run.json is missing"),
        (
            ["{folder}/bundle", "--data", "{data}", "--text-column", "text"],
            1,
            "there is no column 'text'",
        ),
        (["{folder}/run", "--data", "{folder}/none.csv"], 2, "none.csv: no such file"),
        (["{folder}/run"], 2, "Missing option '--data'"),
        (["{folder}/run", "--data", "{data}", "--unit", "3"], 2, "See python -m training ev"),
        (
            ["{folder}/run", "--data", "{data}", "--precision", "int8"],
            1,
            "a run has no --precision",
        ),
        (
            ["{folder}/bundle", "--data", "{data}", "--precision", "int3"],
            1,
            "precision must be one",
        ),
        (
            ["{folder}/run", "--data", "{folder}/strange.csv"],
            1,
            "line 2: the label 'odd' is not in",
        ),
        (
            ["{folder}/run", "--data", "{folder}/invisible.csv"],
            1,
            "invisible.csv, line 3: 'sentence' has no token",
        ),
        (
            ["{folder}/bundle", "--data", "{folder}/invisible.csv"],
            1,
            "invisible.csv, line 3: 'sentence' has no token",
        ),
        (
            ["{folder}/run", "--data", "{data}", "--out", "/none/x.json"],
            1,
            "--out /none/x.json: can not be written (No such file or directory); choose another",
        ),
    ],
)
def test_what_can_not_be_scored_is_one_line(trained, arguments, status, message, capsys):
    folder, data = trained
    (folder / "strange.csv").write_text("sentence,mark\na film,odd\n", encoding="utf-8")
    (folder / "invisible.csv").write_text("sentence,mark\na,bad\n\u200b,bad\n", encoding="utf-8")
    arguments = [argument.format(folder=folder, data=data) for argument in arguments]
    assert main(["evaluate", *arguments]) == status
    shown = capsys.readouterr()
    [line] = shown.err.splitlines()
    assert line.startswith("training: ") and message in line and shown.out == ""
