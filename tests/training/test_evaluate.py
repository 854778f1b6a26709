"""Scores of a run and of its bundle on a user's file."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from seqkeras import serving
from tests import zoo
from tests.training.commands import (
    evaluated,
    exported,
    outcome,
    own_scores_of,
    printed,
    refusal,
    scores_of_both,
)
from tests.training.test_classification import TINY, sentences

COLUMNS = "--text-column sentence --label-column mark".split()
CHEAP = [*TINY, *"--encoder convolution --linear false --looks 1 --baselines false".split()]


def renamed(path):
    """The file with other names of its columns."""
    header, rest = path.read_text(encoding="utf-8").split("\n", 1)
    assert header.strip() == "text,label"
    path.write_text(f"sentence,mark\n{rest}", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run, its bundle, and a file of tests with the same columns."""
    folder = tmp_path_factory.mktemp("evaluate")
    sentences(folder / "train.csv")
    sentences(folder / "test.csv", count=31)
    train, data = renamed(folder / "train.csv"), renamed(folder / "test.csv")
    command = ["classification", train, "--validation", data, *COLUMNS, *CHEAP, "--passes", 1]
    printed(*command, "--out", folder / "run")
    exported(folder)
    return folder, data


def test_a_run_and_its_bundle_have_the_same_scores_which_are_those_of_its_answers(trained, capsys):
    folder, data = trained
    scores = scores_of_both(folder, data)
    assert scores == own_scores_of(folder / "run")  # of the same file, in training
    with open(data, encoding="utf-8", newline="") as file:
        texts, targets = zip(*[*csv.reader(file)][1:])
    answers = [answer.labels[0] for answer in serving.load(folder / "bundle")([*texts])]
    assert scores["accuracy"] == sum(map(str.__eq__, answers, targets)) / 31
    lines = printed("evaluate", folder / "run", "--data", data)
    assert lines[-1].startswith(f"{folder / 'run'} on test.csv: right are ")


@pytest.mark.long
def test_a_score_that_nobody_measures_is_refused_before_the_first_step(trained, tmp_path):
    folder, _ = trained
    common = ["classification", folder / "train.csv", *COLUMNS, *TINY, "--passes", 1, "--best-by"]
    line = refusal(*common, "bleu", out=tmp_path / "run")
    assert line.startswith(
        "seqkeras train: --best-by must be a validation score, validation examples "
    )
    printed(*common, "macro_f1", "--out", tmp_path / "run")


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        ("{0} --data {0}/test.csv", 1, "no run folder, run.json is missing"),
        ("{bundle} --data {0}/test.csv --text-column text", 1, "there is no column 'text'"),
        ("{run} --data {0}/none.csv", 2, "none.csv: no such file"),
        ("{run}", 2, "Missing option '--data'"),
        ("{run} --data {0}/test.csv --unit 3", 2, "See seqkeras train ev"),
        ("{run} --data {0}/test.csv --precision int8", 1, "a run has no --precision"),
        ("{bundle} --data {0}/test.csv --precision int3", 1, "precision must be one"),
        ("{run} --data {0}/strange.csv", 1, "line 2: the label 'odd' is not in"),
        ("{run} --data {0}/unseen.csv", 1, "unseen.csv, line 3: 'sentence' has no token"),
        ("{bundle} --data {0}/unseen.csv", 1, "unseen.csv, line 3: 'sentence' has no token"),
    ],
)
def test_what_can_not_be_scored_is_one_line(trained, arguments, status, message, tmp_path):
    folder, _ = trained
    (folder / "strange.csv").write_text("sentence,mark\na film,odd\n", encoding="utf-8")
    (folder / "unseen.csv").write_text("sentence,mark\na,bad\n\u200b,bad\n", encoding="utf-8")
    names = {"run": folder / "run", "bundle": folder / "bundle"}
    given = arguments.format(folder, **names).split()
    assert message in refusal("evaluate", *given, out=tmp_path / "scores.json", status=status)


def test_scores_that_can_not_be_written_are_one_line(trained):
    folder, data = trained
    out = Path("/none/x.json")
    status, _, [line] = outcome("evaluate", folder / "run", "--data", data, "--out", out)
    written = "can not be written (No such file or directory); choose another"
    assert status == 1 and f"--out {out}: {written}" in line


ROWS = [*zip(zoo.TEXTS, ["low", "high", "middle"] * 2, strict=True)]
NUMBERS = np.array([[place % 7, place % 5, place % 3] for place in range(31)])
TAGS = "".join("".join(f"{word} O\n" for word in text.split()) + "\n" for text in zoo.TEXTS)
TEXTS = "\n".join(3 * zoo.TEXTS)
EXAM = [["en", "right", "a", "b"], *([text, "1", "small", "words"] for text in zoo.TEXTS)]
PAIRS = [["en", "de"], *([text, text[::-1][:8]] for text in zoo.TEXTS)]
OWN = {  # a model of one's own -> a text or a table with other columns, and what names them
    "classify": ([["en", "mark"], *ROWS], "--text-column en --label-column mark"),
    "regress": ([["mark", "en"], *enumerate(zoo.TEXTS)], "--text-column en --number-column mark"),
    "tag": (TAGS, ""),
    "fill_mask": (TEXTS, ""),
    "choose": (EXAM, "--text-column en --answer-column right --choice-columns a,b"),
    "classify_trees": ("(high (middle A) (low model))\n(middle words)\n", ""),
    "forecast": (
        [["a", "b", "c"], *NUMBERS.tolist()],
        "--targets a,b --numbers c --context 11 --horizon 5",
    ),
    "generate": (TEXTS, ""),
    "translate": (PAIRS, "--source-column en --target-column de"),
}


def bundle_of_own(maker, folder):
    """The bundle of a model that `save_run` wrote, its data, and the options of the data."""
    content, options = OWN[maker]
    getattr(zoo, maker)(folder / "run")
    suffix = "csv" if isinstance(content, list) else "conll" if maker == "tag" else "txt"
    data = folder / f"data.{suffix}"
    with open(data, "w", encoding="utf-8", newline="") as file:
        if isinstance(content, list):
            csv.writer(file).writerows(content)
        else:
            file.write(content)
    return exported(folder), data, options.split()


def test_the_bundle_of_a_model_of_ones_own_is_scored_by_options_that_name_columns(tmp_path):
    bundle, data, options = bundle_of_own("classify", tmp_path)
    told = printed("evaluate", bundle, "--data", data, *options)
    assert any("Classify of your own model, scored as by classification" in line for line in told)
    answers = [answer.labels[0] for answer in serving.load(bundle)([text for text, _ in ROWS])]
    right = sum(label == answer for (_, label), answer in zip(ROWS, answers, strict=True))
    assert evaluated(bundle, data, *options)["accuracy"] == right / len(ROWS)
    asked = {
        bundle: "there is no column 'text'",
        tmp_path / "run": "a run of your own model, 'own'",
    }
    for subject, message in asked.items():
        assert message in refusal("evaluate", subject, "--data", data, out=tmp_path / "scores.json")


def test_forecasts_of_arrays_are_scored_window_by_window(tmp_path):
    bundle, data, options = bundle_of_own("forecast", tmp_path)
    forecast = serving.load(bundle)
    numbers = NUMBERS.astype("float32")
    errors = [
        np.abs(forecast(numbers[at : at + 11]).values - numbers[at + 11 : at + 16, :2]).mean()
        for at in range(len(numbers) - 15)
    ]
    assert evaluated(bundle, data, *options)["mae"] == pytest.approx(np.mean(errors), rel=1e-4)
    asked = ["evaluate", bundle, "--data", data, *options[:-1], "4"]
    message = "--horizon and --targets say 4 steps of 2 targets"
    assert message in refusal(*asked, out=tmp_path / "scores.json")


@pytest.mark.long
@pytest.mark.parametrize("maker", [name for name in OWN if name not in ("classify", "forecast")])
def test_every_pipeline_of_a_model_of_ones_own_is_scored(maker, tmp_path):
    bundle, data, options = bundle_of_own(maker, tmp_path)
    scores = evaluated(bundle, data, *options)
    numbers = [value for value in scores.values() if isinstance(value, int | float)]
    assert numbers and all(map(math.isfinite, numbers))


def test_what_no_task_scores_is_refused_by_name(tmp_path):
    zoo.embed(tmp_path / "run")
    (tmp_path / "data.txt").write_text("words", encoding="utf-8")
    bundle = exported(tmp_path)
    asked = ["evaluate", bundle, "--data", tmp_path / "data.txt"]
    line = refusal(*asked, out=tmp_path / "scores.json")
    assert f"{bundle}: no task scores Embed; ask it by serving" in line
