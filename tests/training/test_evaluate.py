"""Scores of a run and of its bundle on a user's file."""

import csv
import json
import math

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.training.__main__ import main
from tests import zoo
from tests.training.test_classification import TINY, sentences

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
        (["{folder}/run", "--data", "{data}", "--unit", "3"], 2, "See seqkeras train ev"),
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


ROWS = [*zip(zoo.TEXTS, ["low", "high", "middle"] * 2, strict=True)]
NUMBERS = np.array([[place % 7, place % 5, place % 3] for place in range(31)])
TAGS = "".join("".join(f"{word} O\n" for word in text.split()) + "\n" for text in zoo.TEXTS)
OWN = {  # a model of one's own -> a file with other columns, and the options that name them
    "classify": ("csv", "--text-column en --label-column mark", [["en", "mark"], *ROWS]),
    "regress": (
        "csv",
        "--text-column en --number-column mark",
        [["mark", "en"], *enumerate(zoo.TEXTS)],
    ),
    "tag": ("conll", "", TAGS),
    "fill_mask": ("txt", "", "\n".join(3 * zoo.TEXTS)),
    "choose": (
        "csv",
        "--text-column en --answer-column right --choice-columns a,b",
        [["en", "right", "a", "b"], *([text, "1", "small", "words"] for text in zoo.TEXTS)],
    ),
    "classify_trees": ("txt", "", "(high (middle A) (low model))\n(middle words)\n"),
    "forecast": (
        "csv",
        "--targets a,b --numbers c --context 11 --horizon 5",
        [["a", "b", "c"], *NUMBERS.tolist()],
    ),
    "generate": ("txt", "", "\n".join(3 * zoo.TEXTS)),
    "translate": (
        "csv",
        "--source-column en --target-column de",
        [["en", "de"], *([text, text[::-1][:8]] for text in zoo.TEXTS)],
    ),
}


def scores_of_own(maker, folder):
    """The scores of the bundle of a model that `save_run` wrote, the bundle, and the data."""
    suffix, options, content = OWN[maker]
    run, bundle, data = folder / "run", folder / "bundle", folder / f"data.{suffix}"
    getattr(zoo, maker)(run)
    export(run, bundle, options=ExportOptions(saved_models=False))
    if isinstance(content, str):
        data.write_text(content, encoding="utf-8")
    else:
        with open(data, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(content)
    return scores_of(folder, bundle, "--data", data, *options.split()), bundle, data


def test_the_bundle_of_a_model_of_ones_own_is_scored_by_options_that_name_columns(tmp_path, capsys):
    scores, bundle, data = scores_of_own("classify", tmp_path)
    assert "Classify of your own model, scored as by classification" in capsys.readouterr().out
    answers = [answer.labels[0] for answer in serving.load(bundle)([text for text, _ in ROWS])]
    right = sum(label == answer for (_, label), answer in zip(ROWS, answers, strict=True))
    assert scores["accuracy"] == right / len(ROWS)
    assert main(["evaluate", str(bundle), "--data", str(data)]) == 1
    assert "there is no column 'text'" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "run"), "--data", str(data)]) == 1
    assert "a run of your own model, 'own'; export it" in capsys.readouterr().err


def test_forecasts_of_arrays_are_scored_window_by_window(tmp_path, capsys):
    scores, bundle, data = scores_of_own("forecast", tmp_path)
    forecast = serving.load(bundle)
    numbers = NUMBERS.astype("float32")
    errors = [
        np.abs(forecast(numbers[at : at + 11]).values - numbers[at + 11 : at + 16, :2]).mean()
        for at in range(len(numbers) - 15)
    ]
    assert scores["mae"] == pytest.approx(np.mean(errors), rel=1e-4)
    options = "--targets a,b --numbers c --context 11 --horizon 4".split()
    assert main(["evaluate", str(bundle), "--data", str(data), *options]) == 1
    assert "--horizon and --targets say 4 steps of 2 targets" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("maker", [name for name in OWN if name not in ("classify", "forecast")])
def test_every_pipeline_of_a_model_of_ones_own_is_scored(maker, tmp_path):
    scores, _, _ = scores_of_own(maker, tmp_path)
    numbers = [value for value in scores.values() if isinstance(value, int | float)]
    assert numbers and all(map(math.isfinite, numbers))


def test_what_no_task_scores_is_refused_by_name(tmp_path, capsys):
    run, bundle = tmp_path / "run", tmp_path / "bundle"
    zoo.embed(run)
    export(run, bundle, options=ExportOptions(saved_models=False))
    (tmp_path / "data.txt").write_text("words", encoding="utf-8")
    assert main(["evaluate", str(bundle), "--data", str(tmp_path / "data.txt")]) == 1
    assert f"{bundle}: no task scores Embed; ask it by serving" in capsys.readouterr().err
