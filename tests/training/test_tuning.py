"""`seqkeras train tune`: what it searches, keeps, ends early, goes on with and refuses."""

import json
import random
from pathlib import Path

import optuna
import pytest

from seqkeras.runs import RunError
from seqkeras.training.__main__ import main
from seqkeras.training.tasks import TASKS
from seqkeras.training.tuning import study
from seqkeras.training.tuning.spaces import (
    USUAL,
    choices_of,
    first_values,
    names_to_search,
    searchable,
    sizes_of,
    suggested,
)
from tests.training.commands import printed, scores_of

WORDS = {"good": "fine nice lovely great".split(), "bad": "awful poor dull grim".split()}


def reviews(path, count=120):
    """A CSV file of texts that one word tells apart."""
    draw, lines = random.Random(0), ["text,label"]
    for place in range(count):
        label = [*WORDS][place % 2]
        rest = [draw.choice(["the", "film", "a", "was"]) for _ in range(4)]
        lines.append(f"{' '.join([*rest, draw.choice(WORDS[label])])},{label}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def trained(monkeypatch):
    """Trainings that last no time: the scores of their looks follow from the learning rate."""
    made = []

    def train(task, folder, overwrite, report):
        made.append(task.options)
        rate = task.options.learning_rate
        for look in range(3):
            report(look, [look - abs(rate - 0.004) * 1e3, 0.0])
        folder.mkdir(parents=True)
        (folder / "rate").write_text(str(rate))

    monkeypatch.setattr(study, "train", train)
    return made


def tune(folder, *more):
    file = reviews(folder / "reviews.csv")
    out = ["--search", "learning_rate,dropout", "--out", folder / "tuned"]
    return printed("tune", "classification", file, *out, *more)


def table(folder):
    return json.loads((folder / "tuned" / "tuning.json").read_text())


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_options_to_search_and_their_values_are_options(name):
    options_class = TASKS[name]
    names = names_to_search(options_class(), (), ())
    assert "learning_rate" in names and {*names} <= {*searchable(options_class)} & {*USUAL}
    options = options_class()
    trial = optuna.trial.FixedTrial(first_values(names, options))
    for each in names:
        assert suggested(trial, each, options) == getattr(options, each)
    assert options.changed(**{each: getattr(options, each) for each in names}) == options


@pytest.mark.parametrize(
    "name, expected",
    [
        ("classification", {"layers", "encoder", "units", "dropout"}),
        ("regression", {"layers", "encoder", "units", "dropout"}),
        ("tagging", {"layers", "encoder", "units", "dropout"}),
        ("forecasting", {"num_layers", "model", "units", "dropout"}),
        ("language-model", {"num_layers", "model", "hidden_dim"}),
    ],
)
def test_layers_and_the_kind_of_a_model_are_searched(name, expected):
    names = {*names_to_search(TASKS[name](), (), ())}
    assert names == expected | {"learning_rate", "batch_size"}


@pytest.mark.parametrize("size, expected", [(1, (1, 2)), (32, (16, 32, 64)), (3, (1, 3, 6))])
def test_sizes_are_halved_and_doubled(size, expected):
    assert sizes_of(size) == expected


def test_choices_are_the_choices_of_the_option():
    from seqkeras.training.options import options_of

    fields = options_of(TASKS["forecasting"])
    assert choices_of(fields["model"]) == ("gru", "lstm", "qrnn", "transformer")
    assert choices_of(fields["horizon"]) == ()


def test_the_best_run_is_left_with_the_table_and_the_picture(tmp_path, trained, monkeypatch):
    monkeypatch.setattr(study, "FIRST_TRIALS", 12)  # none is ended early
    lines = tune(tmp_path, "--trials", "12")
    found = table(tmp_path)
    scores = [trial["score"] for trial in found["trials"] if trial["state"] == "complete"]
    assert found["best"]["score"] == max(scores) and len(scores) == 12
    assert found["first"] == found["trials"][0]["score"]
    rate = float((tmp_path / "tuned" / "best" / "rate").read_text())
    assert rate == found["best"]["learning_rate"]
    assert abs(rate - 0.004) == min(abs(options.learning_rate - 0.004) for options in trained)
    assert max(found["importance"], key=found["importance"].get) == "learning_rate"
    assert (tmp_path / "tuned" / "tuning.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "tuned" / "trials").exists()
    assert lines[-1] == f"next: seqkeras export {tmp_path / 'tuned' / 'best'} bundles/tuned"


@pytest.mark.parametrize(
    ("scores", "varies"),
    [
        ([0.5], False),
        ([0.5] * 4, False),
        ([0.5, 0.5 + 1e-16, 0.5 - 1e-16, 0.5], False),  # as the error of a look before any step
        ([0.1, 0.2, 0.4, 0.9], True),
    ],
)
def test_scores_that_do_not_vary_have_no_importance(scores, varies):
    made = optuna.create_study(direction="maximize")
    space = {"units": optuna.distributions.FloatDistribution(0, 1)}
    for place, score in enumerate(scores):
        values = {"units": place / 7}
        trial = optuna.trial.create_trial(params=values, distributions=space, value=score)
        made.add_trial(trial)
    found = study.importance_of(made, seed=0)
    assert found == ({"units": pytest.approx(1)} if varies else {})


def test_trials_under_the_median_of_a_look_are_ended_early(tmp_path, trained):
    tune(tmp_path, "--trials", "16")
    trials = table(tmp_path)["trials"]
    ended = [trial for trial in trials if trial["state"] == "pruned"]
    assert ended and all(trial["score"] is None for trial in ended)
    for trial in ended:
        before = [each for each in trials[: trial["trial"] - 1] if each["state"] == "complete"]
        look = len(trial["looks"]) - 1
        beside = sorted(each["looks"][look] for each in before)
        assert max(trial["looks"]) < beside[len(beside) // 2]


def test_a_study_goes_on_with_other_draws(tmp_path, trained):
    tune(tmp_path, "--trials", "3")
    lines = tune(tmp_path, "--trials", "5")
    assert "  going on: 3 trials are done" in lines and len(trained) == 5
    assert "  --size small: --embedding-dim 64, --units 64" in lines
    assert len({options.learning_rate for options in trained}) == 5
    tune(tmp_path, "--trials", "5")
    assert len(trained) == 5


@pytest.mark.parametrize("storage", ["sqlite", "journal"])
def test_a_trial_that_is_stopped_is_tried_again(tmp_path, trained, monkeypatch, capsys, storage):
    whole, stopped = study.train, []

    def stop(task, *arguments, **named):
        if len(trained) == 2 and not stopped:
            stopped.append(task.options.learning_rate)
            raise KeyboardInterrupt
        whole(task, *arguments, **named)

    monkeypatch.setattr(study, "train", stop)
    file = reviews(tmp_path / "reviews.csv")
    options = ["--search", "learning_rate", "--trials", "4", "--storage", storage]
    command = ["tune", "classification", file, *options, "--out", str(tmp_path / "tuned")]
    assert main(command) == 130
    assert "the same command, without --overwrite, goes on" in capsys.readouterr().err
    assert main(command) == 0
    assert trained[2].learning_rate == stopped[0]
    states = [trial["state"] for trial in table(tmp_path)["trials"]]
    assert states.count("complete") + states.count("pruned") == 4 and states.count("fail") == 1


def test_what_can_not_be_trained_is_told_or_left_out(tmp_path, trained, monkeypatch, capsys):
    whole = study.train

    def refuse(task, *arguments, **named):
        if task.options.learning_rate > 0.005:
            raise RunError("the loss is not finite")
        whole(task, *arguments, **named)

    monkeypatch.setattr(study, "train", refuse)
    lines = tune(tmp_path, "--trials", "9")
    assert sum("can not be trained: the loss is not finite" in line for line in lines) >= 1
    assert table(tmp_path)["best"]["learning_rate"] <= 0.005
    empty = tmp_path / "empty.csv"
    empty.write_text("text,label\n")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["tune", "classification", str(empty), "--out", "other"]) == 1
    assert "empty.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more, message",
    [
        (["--search", "horizon"], "--search must be of "),
        (["--search", "dropout", "--dropout", "0.2"], "--dropout is given; leave one out"),
        (["--trials", "0"], "'--trials'"),
    ],
)
def test_refusals(tmp_path, capsys, more, message):
    file = reviews(tmp_path / "reviews.csv")
    command = ["tune", "classification", file, *more, "--out", str(tmp_path / "tuned")]
    assert main(command) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "tuned").exists()


def test_folders_of_others_and_other_studies_are_refused(tmp_path, trained, capsys):
    tune(tmp_path, "--trials", "1")
    file = reviews(tmp_path / "reviews.csv")
    command = ["tune", "classification", file, "--search", "learning_rate,dropout"]
    assert main([*command, "--units", "9", "--out", str(tmp_path / "tuned")]) == 1
    assert "holds a study with another units" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert main([*command, "--overwrite", "--out", str(tmp_path / "mine")]) == 1
    assert "holds no study of tune" in capsys.readouterr().err
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_tuned_classifier_is_an_ordinary_run(tmp_path):
    more = "--trials 2 --max-steps 12 --units 8 --batch-size 16 --looks 2".split()
    lines = tune(tmp_path, *more)
    best = Path(tmp_path / "tuned" / "best")
    assert scores_of(best)["accuracy"] == pytest.approx(table(tmp_path)["best"]["score"])
    assert any("trial 2 of 2" in line for line in lines)
    file = str(tmp_path / "reviews.csv")
    rerun = json.loads((best / "options.json").read_text())
    assert rerun["units"] == 8 and rerun["task"] == "classification"
    assert main(["evaluate", str(best), "--data", file]) == 0
