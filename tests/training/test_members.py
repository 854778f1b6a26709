"""Several models of one task whose mean is one model."""

import functools

import click
import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.training.options import TASKS as TASK_OPTIONS
from tests.arrays import close
from tests.conftest import others_long
from tests.training.commands import (
    answers_of_run,
    assert_goes_on,
    exported,
    printed,
    refusal,
    scores_of,
)
from tests.training.test_calibration import noisy
from tests.training.test_forecasting import COLUMNS, SIZES, arguments, hourly
from tests.training.test_regression import rated
from tests.training.test_subword_dropout import tagged

COUNT = 2
SHORT = ["--embedding-dim", 8, "--units", 8, "--max-steps", 5, "--baselines", "false"]


def forecasting(folder):
    options = arguments(**COLUMNS | SIZES, quantiles=(0.1, 0.5, 0.9), max_steps=4, held_out=0.3)
    options += ["--model", "qrnn", "--looks", 1, "--baselines", "false"]
    return ["forecasting", hourly(folder / "load.csv"), *options]


TASKS = {
    "forecasting": forecasting,
    "classification": lambda folder: ["classification", noisy(folder / "own.csv", 200), *SHORT],
    "regression": lambda folder: ["regression", rated(folder / "own.csv"), *SHORT],
    "tagging": lambda folder: ["tagging", tagged(folder / "own.conll"), *SHORT],
}


def members(folder):
    """The models of the members."""
    paths = (folder / "run/members" / f"{number + 1}/model.keras" for number in range(COUNT))
    return [keras.models.load_model(path, compile=False) for path in paths]


def inputs_of(model, rows=7):
    """Random inputs of a model, ids among them."""
    random, inputs = np.random.default_rng(0), {}
    for name, tensor in model.input.items():
        shape = [rows, *(5 if size is None else size for size in tensor.shape[1:])]
        is_number = "float" in tensor.dtype
        inputs[name] = random.normal(size=shape) if is_number else random.integers(1, 6, shape)
    return inputs


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function: name of a task -> the folder of its run, and what was printed."""

    @functools.cache
    def train(task):
        folder = tmp_path_factory.mktemp(task)
        command = [*TASKS[task](folder), "--members", COUNT, "--out", folder / "run"]
        return folder, printed(*command)

    return train


@pytest.mark.parametrize("task", others_long(TASKS))
def test_the_model_is_the_mean_of_models_of_several_seeds(task, trained):
    folder, lines = trained(task)
    model = keras.models.load_model(folder / "run/model.keras", compile=False)
    each = members(folder)
    inputs = inputs_of(model)
    answers = [np.asarray(member(inputs), "float64") for member in each]
    assert not np.allclose(answers[0], answers[1], rtol=1e-3)
    expected, scores = np.mean(answers, axis=0), scores_of(folder / "run")
    if calibration := scores.get("calibration"):
        if "temperature" in calibration:
            expected = expected / calibration["temperature"]
        else:
            [[factor, _]] = calibration["factors"].values()
            expected = expected[..., 1:2] + factor * (expected - expected[..., 1:2])
    close(model(inputs), expected, 1e-4, 1e-5)
    for number in range(COUNT):
        assert f"member {number + 1} of 2" in lines
        assert (folder / f"run/members/{number + 1}/history.csv").stat().st_size > 0
        assert "calibration" not in scores_of(folder / f"run/members/{number + 1}")


def test_another_training_does_not_begin_with_the_mean(trained, tmp_path):
    folder, _ = trained("forecasting")
    command = TASKS["forecasting"](tmp_path)
    line = refusal(*command, "--start-from", folder / "run", out=tmp_path / "run")
    way_out = f"--start-from {folder / 'run/members/1'}"
    assert f"It is the mean of several members; begin with one: {way_out}." in line


def test_a_bundle_forecasts_the_mean(trained):
    folder, _ = trained("forecasting")
    lines = (folder / "load.csv").read_text().splitlines()[1:19]
    rows = [line.split(",")[:-1] for line in lines]
    series = {"series": tuple(rows[:13]), "known": [row[-2:] for row in rows[13:]]}
    bundle = exported(folder)
    assert [path.name for path in (bundle / "onnx").glob("*.onnx")] == ["model.onnx"]
    runs = [folder / f"run/members/{number + 1}" for number in range(COUNT)]
    each = [answers_of_run(run, [series])[0].values for run in runs]
    close(serving.load(bundle, threads=1)(series).values, np.mean(each, axis=0), 1e-5)


@pytest.mark.long
def test_a_training_of_members_goes_on_where_it_was_stopped(tmp_path):
    """Behind the first of two checkpoints of the second member."""
    command = [*TASKS["classification"](tmp_path), "--members", 2, "--steps-per-save", 3]
    assert_goes_on(tmp_path, *command, count=3)


@pytest.mark.long
def test_overwrite_trains_all_members_anew(tmp_path):
    command = [*TASKS["regression"](tmp_path), "--members", 2, "--out", tmp_path / "run"]
    first = printed(*command)
    assert "member 2 of 2" in first
    assert "finished already" in " ".join(printed(*command))
    assert printed(*command, "--overwrite").count("member 2 of 2") == 1
    printed(*command[:-4], "--overwrite", "--out", tmp_path / "run")
    assert not (tmp_path / "run/members").exists()


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("forecasting", {"causal": True, "targets": ("a",)}),
        ("tagging", {"crf": True}),
        ("classification", {"teacher": "runs/teacher"}),
        ("regression", {"pretrained": "bert"}),
        ("classification", {"strategy": "mirrored"}),
        ("classification", {"encoder": "tree"}),
    ],
)
def test_members_that_can_not_be_averaged_are_refused(task, options):
    name = next(iter(options))
    with pytest.raises(click.UsageError, match=f"--members and --{name}.* exclude each other"):
        TASK_OPTIONS[task](members=2, **options).check()
