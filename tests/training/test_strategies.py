"""Several replicas learn what one device learns, and what they can not do is refused."""

import json

import numpy as np
import pytest
import tensorflow as tf

from seqkeras.runs import RunError
from seqkeras.training import train as training
from seqkeras.training.options import FitOptions
from seqkeras.training.strategies import OneDevice, Replicas, Workers, _with_weights, strategy
from seqkeras.training.tasks.language_model import LanguageModelOptions
from seqkeras.training.tasks.tagging import TaggingOptions
from tests.conftest import run_python


def replicas(*names):
    """How far losses and weights of two replicas are from those of one device, by case."""
    finished = run_python("-m", "tests.training.replicas", *names)
    assert finished.returncode == 0, finished.stderr
    differences = json.loads(finished.stdout.splitlines()[-1])
    assert differences.pop("gradients of graphs that are kept") == 0
    return differences


def test_two_replicas_with_different_numbers_of_tokens_come_to_the_losses_and_weights_of_one():
    assert replicas("RNN")["RNN"] < 1e-6


@pytest.mark.long
def test_two_replicas_come_to_the_losses_and_weights_of_one():
    names = ["classification", "distillation", "forecasting", "going on from a GPT", "several"]
    names += ["bert-pretraining"]
    differences = replicas(*names)
    assert [*differences] == names
    assert max(differences.values()) < 1e-6, differences


@pytest.mark.parametrize(
    "name, message",
    [
        ("mirrored", "--strategy mirrored: needs two devices; there is /device:CPU:0."),
        ("tpu", "--strategy tpu: no TPU can be reached .*TPU_NAME"),
        ("multi-worker", "--strategy multi-worker: the environment variable TF_CONFIG must name"),
    ],
)
def test_a_strategy_that_can_not_be_had_is_refused_with_the_reason(name, message, monkeypatch):
    for variable in ("TF_CONFIG", "TPU_NAME"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(RunError, match=message):
        strategy(name)


def test_auto_is_the_workers_that_tf_config_names_and_else_one_device(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert strategy("auto").num_replicas == strategy("one").num_replicas == 1
    config = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    found = strategy("auto")
    assert isinstance(found, Workers)
    assert (found.num_replicas, found.is_chief) == (2, True)


def test_what_fit_takes_elsewhere_is_refused_with_a_way_out():
    with pytest.raises(ValueError, match="must be a tf.data.Dataset .*, as the method dataset of"):
        object.__new__(Replicas).prepare(None, [1, 2])


def test_weights_that_a_batch_brings_are_its_targets_shares():
    batch = {"x": [1, 2]}, {"y": [[3, 0], [5, 7]]}, {"y": [[1.0, 1.0], [2.0, 0.0]]}
    dataset = tf.data.Dataset.from_tensors(batch)
    [(_, _, weights)] = _with_weights(dataset, {("y",): 0})
    np.testing.assert_allclose(weights["y"], [[1 / 3, 0], [2 / 3, 0]])
    [(_, _, weights)] = _with_weights(dataset.map(lambda x, y, _: (x, y)), {("y",): 0})
    np.testing.assert_allclose(weights["y"], [[1 / 3, 0], [1 / 3, 1 / 3]])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"batch_size": 7}, "--batch-size 7: must divide by the 2 devices"),
        ({"batch_tokens": 64}, "--batch-tokens: not with several devices"),
        ({"gradient_accumulation": 2}, "--gradient-accumulation: not with several devices"),
        ({"xla": True}, "--xla: not with several devices"),
        ({"mixed_precision": "float16"}, "--mixed-precision float16: not with several devices"),
        ({"optimizer": "keras-adam"}, "--optimizer keras-adam: not with several devices"),
    ],
)
def test_an_option_that_replicas_can_not_take_is_refused_with_the_reason(options, message):
    devices = object.__new__(Replicas)
    devices.num_replicas = 2
    devices.refuse(FitOptions(batch_size=8))
    with pytest.raises(RunError, match=message):
        devices.refuse(FitOptions(**{"batch_size": 8} | options))


@pytest.mark.parametrize(
    "options, message",
    [
        (
            LanguageModelOptions(files=("text.txt",), model="lstm", context=5),
            "--windows consecutive: not with several devices: .* random",
        ),
        (
            TaggingOptions(file="frames.npz", causal=True, carry_every=4),
            "--carry-every: not with several devices: .*; choose --max-length, or --strategy",
        ),
    ],
)
def test_a_state_that_is_carried_on_is_refused_on_several_devices(
    options, message, tmp_path, monkeypatch
):
    devices = OneDevice()
    devices.num_replicas = 2
    monkeypatch.setattr(training, "strategy", lambda name: devices)
    (tmp_path / "text.txt").write_text("abcd " * 200, encoding="utf-8")
    frames = np.random.default_rng(0).normal(size=(97, 7, 2))
    np.savez(tmp_path / "frames.npz", frames=frames, labels=frames[..., 0] > 0)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match=message):
        training.train(options.make(), tmp_path / "run")
