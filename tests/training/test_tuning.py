"""`seqkeras train tune`: what it searches, keeps, ends early, goes on with and refuses."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import click
import optuna
import pytest

from seqkeras.runs import RunError
from seqkeras.training.__main__ import main
from seqkeras.training.options import FitOptions, Options, option, options_of, part
from seqkeras.training.options.spaces import SIZE, Range, Space
from seqkeras.training.tasks import TASKS
from seqkeras.training.tuning import command, study
from seqkeras.training.tuning.spaces import (
    first_values,
    spaces_of,
    spaces_to_search,
    suggested,
    usual_names,
    values_to_try,
)
from seqkeras.training.validation import Compared
from tests.training.commands import printed, refused_options, scores_of
from tests.training.test_distilling import reviews


@pytest.fixture
def trained(monkeypatch):
    """Trainings that last no time: the scores of their looks follow from the learning rate."""
    made = []

    def train(task, folder, overwrite, report, stepped):
        made.append(task.options)
        rate = task.options.learning_rate
        for look in range(3):
            report(look, [look - abs(rate - 0.004) * 1e3, 0.0], Compared("macro F1", False))
        folder.mkdir(parents=True)
        (folder / "rate").write_text(str(rate))

    monkeypatch.setattr(study, "train", train)
    return made


def tune(folder, *more):
    file = reviews(folder / "reviews.csv", 120)
    out = ["--search", "learning_rate,dropout", "--out", folder / "tuned"]
    return printed("tune", "classification", file, *out, *more)


def table(folder):
    return json.loads((folder / "tuned" / "tuning.json").read_text())


MODELS = options_of(TASKS["translation"])["model"].metadata["type"].choices
# What a task can not be trained without.
NEEDED = {
    "forecasting": {"targets": ("load",)},
    "multiple-choice": {"pretrained": "models/minilm"},
    "prompt-answer": {"start_from": "runs/gpt"},
    "question-answering": {"model": "bidaf"},
    "several": {"pretrained": "models/minilm"},
}
TABLES = "[a]\ntask = 'classification'\nfile = 'a.csv'\n[b]\ntask = 'tagging'\nfile = 'b.conll'\n"


@pytest.fixture
def options_of_task(tmp_path, monkeypatch):
    """The options of a task of this name, as they are."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.conll", "toy.toml"):
        (tmp_path / name).write_text(TABLES)
    (tmp_path / "models" / "minilm").mkdir(parents=True)
    (tmp_path / "models" / "minilm" / "config.json").write_text("{}")

    def made(name, **values):
        file = {"file": "toy.toml"} if name == "several" else {}
        return TASKS[name](**file | NEEDED.get(name, {}) | values)

    return made


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_options_to_search_and_their_values_are_options(name, options_of_task):
    options = options_of_task(name)
    spaces = spaces_to_search(options, (), ())
    assert "learning_rate" in spaces and {*spaces} <= {*usual_names(TASKS[name])}
    first = first_values(spaces, options)
    assert {*first} == {*spaces}
    trial = optuna.trial.FixedTrial(first)
    values = {each: suggested(trial, each, space) for each, space in spaces.items()}
    assert all(getattr(options, each) in (None, value) for each, value in values.items())
    changed = options.changed(**values)
    assert not [*changed.all_problems(changed)]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("classification", {"num_layers", "encoder", "units", "dropout"}),
        ("regression", {"num_layers", "encoder", "units", "dropout"}),
        ("tagging", {"num_layers", "encoder", "units", "dropout"}),
        ("forecasting", {"num_layers", "model", "units", "dropout"}),
        ("language-model", {"num_layers", "model", "hidden_dim", "dropout"}),
        ("translation", {"num_layers", "model", "hidden_dim", "dropout"}),
        ("question-answering", {"units", "dropout"}),
    ],
)
def test_layers_and_the_kind_of_a_model_are_searched(name, expected, options_of_task):
    spaces = spaces_to_search(options_of_task(name), (), ())
    assert {*spaces} == expected | {"learning_rate", "batch_size"}


@pytest.mark.parametrize("model", MODELS)
def test_layers_of_a_translator_are_searched_about_those_of_its_paper(model):
    from seqkeras.models import RNNSeq2Seq

    options = TASKS["translation"](model=model)
    made = 3
    if model != "transformer":
        made = getattr(RNNSeq2Seq, model.replace("-", "_"))(7, 7, 5, 5)
        made = made.encoder.options["num_layers"]
    assert values_to_try(options, "num_layers") == Range(1, made + 2)
    assert first_values({"num_layers": Range(1, made + 2)}, options) == {"num_layers": made}


@pytest.mark.parametrize(
    "name, values, left_out",
    [
        ("classification", {"pretrained": "x"}, {"encoder", "units", "num_layers"}),
        ("regression", {"pretrained": "x"}, {"encoder", "units", "num_layers"}),
        ("tagging", {"pretrained": "x"}, {"encoder", "units", "num_layers"}),
        ("classification", {"pretrained": "x", "teacher": "y"}, {"encoder", "units", "num_layers"}),
        ("classification", {"encoder": "tree"}, {"num_layers"}),
        ("classification", {"start_from": "x"}, {"encoder", "units", "num_layers"}),
        ("translation", {"pretrained": "x"}, {"model"}),
        ("language-model", {"start_from": "x"}, {"model", "num_layers", "hidden_dim", "dropout"}),
    ],
)
def test_options_that_another_option_brings_are_not_searched(
    name, values, left_out, options_of_task
):
    options, given = options_of_task(name, **values), {*values}
    spaces = spaces_to_search(options, (), given)
    assert {*spaces} == {*usual_names(TASKS[name])} - left_out - given
    for each in left_out - given:
        with pytest.raises(click.UsageError, match=f"--search {each}: .*--"):
            spaces_to_search(options, [each], given)


def test_values_that_other_options_refuse_are_not_tried(options_of_task):
    encoders = values_to_try(options_of_task("classification"), "encoder")
    assert "lstm" in encoders and "tree" in encoders and "bert" not in encoders
    student = options_of_task("classification", teacher="runs/a")
    encoders = values_to_try(student, "encoder")
    assert "bert" in encoders and "tree" not in encoders
    recurrent = options_of_task("forecasting", decoder="recurrent")
    assert values_to_try(recurrent, "model") == ("gru", "lstm")
    assert values_to_try(options_of_task("forecasting"), "model")[2:] == ("qrnn", "transformer")


def test_an_option_has_its_space_where_it_is_declared():
    class Layers(Options):
        width: int = option(3, int, "Width.", search=SIZE)
        depth: int = option(3, int, "Depth.", search=SIZE)
        other: int = option(3, int, "Not searched.")

    class Toy(FitOptions):
        layers: Layers = part(Layers)
        width: int = option(5, int, "Another default.")
        depth: int = option(7, int, "Another space.", search=Space(lambda depth: Range(1, depth)))

    assert spaces_of(Toy)["width"] is SIZE and "other" not in spaces_of(Toy)
    assert values_to_try(Toy(), "width") == (2, 5, 10)
    assert values_to_try(Toy(), "depth") == Range(1, 7)


@pytest.mark.parametrize("size, expected", [(1, (1, 2)), (32, (16, 32, 64)), (3, (1, 3, 6))])
def test_sizes_are_halved_and_doubled(size, expected):
    assert SIZE.about(size) == expected


def test_an_option_without_a_value_may_stay_so(options_of_task):
    options = options_of_task("translation", model="bahdanau")
    cells = values_to_try(options, "cell")
    assert cells == (None, "gru", "lstm", "simple_rnn")
    assert first_values({"cell": cells}, options) == {"cell": None}


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
    ("scores", "different", "varies"),
    [
        ([0.5], 99, False),
        ([0.5] * 4, 99, False),
        ([0.5, 0.5 + 1e-16, 0.5 - 1e-16, 0.5], 99, False),  # as the error before any step
        ([0.1, 0.2, 0.4, 0.9], 99, False),  # too few
        ([place / 9 for place in range(study.FEWEST - 1)], 99, False),
        ([place / 9 for place in range(study.FEWEST)], 99, True),
        ([place % 7 for place in range(2 * study.FEWEST)], 7, False),  # the same options again
    ],
)
def test_scores_that_do_not_vary_have_no_importance(scores, different, varies):
    made = optuna.create_study(direction="maximize")
    space = {"units": optuna.distributions.FloatDistribution(0, 1)}
    for place, score in enumerate(scores):
        values = {"units": place % different / 99}
        trial = optuna.trial.create_trial(params=values, distributions=space, value=score)
        made.add_trial(trial)
    found = study.importance_of(made, seed=0)
    assert found == ({"units": pytest.approx(1)} if varies else {})


def test_lines_tell_what_is_tried_the_score_by_its_name_and_the_time_that_is_left(
    tmp_path, trained
):
    lines = tune(tmp_path, "--trials", "3")
    begun = [line for line in lines if re.match(r"  trial \d of 3", line)]
    assert begun[0].startswith("  trial 1 of 3: ") and len(begun) == 3
    assert all(re.match(r"  trial \d of 3, about \d+ s left: ", line) for line in begun[1:])
    assert all("learning_rate" in line for line in begun)
    first = table(tmp_path)["trials"][0]["score"]
    assert any(line.startswith(f"    macro F1 {first:.4g} (best ") for line in lines)
    assert table(tmp_path)["compared_by"] == "macro F1"
    told = f"  the share of each option is told from {study.FEWEST} different trials on; "
    assert f"{told}3 are done" in lines


def test_the_first_trial_tells_the_time_that_is_left_by_its_steps(tmp_path, monkeypatch):
    clock = iter([0.0, 0.2, 9.0, 10.0, 30.0])  # the first step is traced

    def train(task, folder, overwrite, report, stepped):
        folder.mkdir(parents=True)
        for step in (1, 2, 11, 12, 20) if stepped else ():
            stepped(step, 20)
        report(0, [0.5, 0.0], Compared("macro F1", False))

    monkeypatch.setattr(study, "train", train)
    monkeypatch.setattr(study, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    lines = tune(tmp_path, "--trials", "3")
    told = [line for line in lines if "last as long" in line]
    assert told == ["    about 44 s left, if all trials last as long"]  # 49 steps of 0.9 s


def test_a_lower_score_is_told_as_people_know_it(tmp_path, monkeypatch):
    def train(task, folder, overwrite, report, stepped):
        folder.mkdir(parents=True)
        report(0, [-task.options.learning_rate, 0.0], Compared("MASE", True))

    monkeypatch.setattr(study, "train", train)
    lines = tune(tmp_path, "--trials", "3")
    rates = [trial["learning_rate"] for trial in table(tmp_path)["trials"]]
    assert f"    MASE {rates[0]:.4g} (best {rates[0]:.4g}, trial 1)" in lines
    assert f"MASE {min(rates):.4g} beside {rates[0]:.4g} of the options" in lines[-2]
    assert table(tmp_path)["best"]["score"] == -min(rates)


def test_six_options_fit_into_80_columns(tmp_path, trained):
    file = reviews(tmp_path / "reviews.csv", 120)
    out = ["--out", tmp_path / "tuned", "--trials", "4"]
    lines = printed("tune", "classification", file, *out)
    places = [place for place, line in enumerate(lines) if "──" in line]
    rows = lines[places[0] - 2 : places[0] + 2]
    assert all(len(line) <= 80 for line in rows)
    assert " ".join(rows[0].split() + rows[1].split()).count("…") == 0
    words = {*rows[0].split(), *rows[1].split()}
    assert words >= {"batch", "size", "learning", "rate", "encoder", "units", "layers", "dropout"}


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
    file = reviews(tmp_path / "reviews.csv", 120)
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


test_what_can_not_be_searched_is_refused = refused_options(
    "tune classification {table}",
    ("--search horizon", "--search must be of "),
    ("--search dropout --dropout 0.2", "--dropout is given; leave one out"),
    ("--trials 0", "'--trials'"),
)


def test_a_folder_of_others_is_refused(tmp_path, capsys):
    command = ["tune", "classification", reviews(tmp_path / "reviews.csv", 120)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert main([*command, "--overwrite", "--out", str(tmp_path / "mine")]) == 1
    assert "holds no study of tune" in capsys.readouterr().err
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


@pytest.mark.parametrize(
    "more, message",
    [
        (["--units", "9"], "holds a study with another units; choose another --out, or --over"),
        (["--search", "units"], "holds a study that searches learning_rate, dropout; leave --sear"),
        (["--dropout", "0.2"], "holds a study that searches dropout; leave --dropout out, choose"),
    ],
)
def test_a_study_of_other_options_is_refused_with_a_way_out(
    tmp_path, trained, capsys, more, message
):
    tune(tmp_path, "--trials", "1")
    out = ["--out", str(tmp_path / "tuned"), "--trials", "2"]
    assert main(["tune", "classification", str(tmp_path / "reviews.csv"), *more, *out]) == 1
    assert message in capsys.readouterr().err
    with open(tmp_path / "reviews.csv", "a") as file:
        file.write("a fine film,good\n")
    command = ["tune", "classification", str(tmp_path / "reviews.csv"), *out]
    assert main(command) == 1
    assert "holds a study with files of another content" in capsys.readouterr().err
    assert len(trained) == 1


@pytest.mark.parametrize("more", [[], ["--search", "dropout,learning_rate"]])
def test_a_study_goes_on_with_the_options_that_it_searches(tmp_path, trained, more):
    tune(tmp_path, "--trials", "1")  # searches less than a command without --search
    out = ["--out", tmp_path / "tuned", "--trials", "3"]
    lines = printed("tune", "classification", tmp_path / "reviews.csv", *more, *out)
    assert "tune classification: learning_rate, dropout" in lines and len(trained) == 3
    assert {*table(tmp_path)["trials"][-1]} >= {"learning_rate", "dropout"}
    assert len({options.encoder for options in trained}) == 1


def test_a_study_that_is_older_than_an_option_or_a_value_goes_on(tmp_path, trained, monkeypatch):
    whole = study.options_content

    def older(*arguments):
        content = whole(*arguments)
        del content["none_of_these"]  # as before there was such an option
        return content

    more = ["classification", reviews(tmp_path / "reviews.csv", 120), "--search", "encoder"]
    more += ["--out", tmp_path / "tuned"]
    with monkeypatch.context() as patched:
        patched.setattr(study, "options_content", older)
        patched.setattr(command, "spaces_to_search", lambda *_: {"encoder": ("lstm", "older")})
        printed("tune", *more, "--trials", "1")
    printed("tune", *more, "--trials", "9")
    assert len(trained) > 1 and {options.encoder for options in trained} == {"lstm", "older"}


def test_a_tuned_classifier_is_an_ordinary_run(tmp_path):
    more = "--trials 2 --max-steps 12 --units 8 --batch-size 16 --looks 2 --linear false".split()
    more += "--encoder convolution --baselines false".split()
    lines = tune(tmp_path, *more)
    best = Path(tmp_path / "tuned" / "best")
    assert scores_of(best)["accuracy"] == pytest.approx(table(tmp_path)["best"]["score"])
    assert any("trial 2 of 2" in line for line in lines)
    file = str(tmp_path / "reviews.csv")
    rerun = json.loads((best / "options.json").read_text())
    assert rerun["units"] == 8 and rerun["task"] == "classification"
    assert main(["evaluate", str(best), "--data", file]) == 0
