"""What a training writes and decides as it goes on, and that a stop changes none of it."""

import csv
import functools
import itertools
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from seqkeras.runs import RunError
from seqkeras.training.callbacks import Progress
from seqkeras.training.fit import Plan, fit
from seqkeras.training.optimizing import make_optimizer
from seqkeras.training.options import FitOptions
from seqkeras.training.validation import Look
from tests.conftest import others_long
from tests.training.stops import stopped_behind_a_checkpoint

LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
PEAK = [0.2, 0.7, 0.7, 0.6, 0.5, 0.4, 0.9]  # a validation score, look by look


def classifier():
    layers = [keras.layers.Dense(5, "tanh"), keras.layers.Dropout(0.3), keras.layers.Dense(2)]
    return keras.Sequential([keras.Input((3,)), *layers])


def batches(done):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(50, 7, 3)).astype("float32")
    y = (x.sum(-1) > 0).astype("int64")
    return tf.data.Dataset.from_tensor_slices((x[done:], y[done:]))


class Scored:
    """A validation whose score is told in advance by the step; it keeps the weights that it saw."""

    def __init__(self, scores=PEAK, every=5):
        self.scores, self.every, self.seen = scores, every, {}

    def __call__(self, model):
        step = int(model.optimizer.iterations)
        self.seen[step] = model.get_weights()
        score = self.scores[min(step // self.every, len(self.scores)) - 1]
        return Look({}, {"score": score}, f"  answer {float(self.seen[step][0][0, 0])}\n")

    def rank(self, look):
        return [look.scores["score"]]

    def in_words(self, look):
        return [f"score {look.scores['score']:.0%}"]


def options(**given):
    given = {"steps_per_save": 5, "steps_per_look": 5} | given
    return FitOptions(warmup_steps=3, **given)


def trained(folder, num_steps=35, validation=None, **given):
    folder.mkdir(exist_ok=True)
    more = {"validation": validation or Scored(), "tokens_from": lambda step: itertools.repeat(21)}
    plan = Plan(classifier, LOSS, batches, num_steps, options(**given), folder, **more)
    with pytest.MonkeyPatch.context() as patch:  # to draw takes longer than to train
        patch.setattr("seqkeras.training.history.draw_curves", lambda rows, path: path.touch())
        return fit(plan)


def stopped(folder, saves, **given):
    with stopped_behind_a_checkpoint(saves):
        trained(folder, **given)


def history(folder):
    with open(folder / "history.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    timed = [(row.pop("seconds"), row.pop("tokens_per_second")) for row in rows]
    assert all(float(seconds) > 0 and float(tokens) > 0 for seconds, tokens in timed)
    return rows


def same(model, other):
    for weight, expected in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, expected)


RATES = {"beta2": 0.9, "last_learning_rate": 1e-4}


@pytest.mark.parametrize(
    ("saves", "given"),
    others_long(
        [
            (4, {"patience": 3}),
            (3, {"keep": "last", "optimizer": "lion", "schedule": "linear"} | RATES),
            (2, {"steps_per_save": 10, "steps_per_look": 4, "tensorboard": False}),
            (1, {}),
            (5, {"patience": 3}),
        ],
        short=2,
    ),
)
def test_a_training_that_was_stopped_ends_as_one_that_was_not(saves, given, tmp_path):
    scored = functools.partial(Scored, every=given.get("steps_per_look", 5))
    whole = trained(tmp_path / "whole", validation=scored(), **given)
    stopped(tmp_path / "stopped", saves, validation=scored(), **given)
    same(trained(tmp_path / "stopped", validation=scored(), **given), whole)
    assert history(tmp_path / "stopped") == history(tmp_path / "whole")
    assert (tmp_path / "whole/tensorboard").exists() == given.get("tensorboard", True)
    both = [(tmp_path / name / "samples.txt").read_text() for name in ("stopped", "whole")]
    assert both[0] == both[1]


def test_the_history_has_a_row_for_each_checkpoint(tmp_path):
    trained(tmp_path)
    rows = history(tmp_path)
    assert [row["step"] for row in rows] == ["5", "10", "15", "20", "25", "30", "35"]
    assert list(rows[0]) == ["step", "loss", "learning_rate", "score"]
    assert [float(row["score"]) for row in rows] == PEAK
    assert float(rows[-1]["learning_rate"]) == pytest.approx(0, abs=1e-9)


@pytest.mark.long
def test_events_of_a_stopped_training_stand_once_for_tensorboard(tmp_path):
    stopped(tmp_path, 3)
    (tmp_path / "checkpoint.keras").unlink()
    stopped(tmp_path, 2)
    trained(tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard"), purge_orphaned_data=True).Reload()
    assert [event.step for event in events.Scalars("score")] == [5, 10, 15, 20, 25, 30, 35]
    np.testing.assert_allclose([event.value for event in events.Scalars("score")], PEAK)
    assert {"loss", "learning_rate", "tokens_per_second"} <= set(events.Tags()["scalars"])


@pytest.mark.parametrize(("keep", "step"), [("best", 10), ("last", 20)])  # the first of the best
def test_the_model_is_kept_that_was_asked_for(keep, step, tmp_path):
    validation = Scored([0.2, 0.7, 0.7, 0.6])
    model = trained(tmp_path, 20, validation, keep=keep)
    for weight, expected in zip(model.get_weights(), validation.seen[step], strict=True):
        np.testing.assert_array_equal(weight, expected)


@pytest.mark.parametrize(
    ("scores", "given", "steps"),
    [
        (PEAK, {"patience": 3}, [5, 10, 15, 20, 25]),
        ([0.7, 0.2, 0.1, 0.9, 0.9], {"patience": 2, "steps_per_save": 15}, [5, 10, 15]),
    ],
)
def test_patience_ends_a_training_and_a_later_start_does_not_go_on(
    scores, given, steps, tmp_path, capsys
):
    validation, again = Scored(scores), Scored(scores)
    model = trained(tmp_path, validation=validation, **given)
    assert sorted(validation.seen) == steps
    told = f"no better model in {given['patience']} looks: ended early"
    assert told in capsys.readouterr().out
    same(trained(tmp_path, validation=again, **given), model)
    assert again.seen == {}


def test_looks_are_spread_over_the_training(tmp_path):
    validation = Scored()
    plain = FitOptions(steps_per_save=5, looks=3)
    fit(Plan(classifier, LOSS, batches, 30, plain, tmp_path, validation=validation))
    assert sorted(validation.seen) == [10, 20, 30]


LOOKS = [
    ({"steps_per_save": 10, "steps_per_look": 4}, [4, 8, 12, 16, 20, 24, 28, 30]),
    ({"steps_per_save": 15, "steps_per_look": 4, "gradient_accumulation": 2}, [4, 8, 12]),
    ({"steps_per_save": 15, "steps_per_look": 5}, [5, 10, 15, 20, 25, 30]),
    ({"steps_per_save": 5, "steps_per_look": 8}, [8, 16, 24, 30]),
    ({"steps_per_save": 9, "steps_per_look": 6, "average_checkpoints": 2}, [6, 12, 18, 24, 30]),
]


@pytest.mark.parametrize(("given", "expected"), others_long(LOOKS, short=2))
def test_looks_are_at_their_steps_wherever_checkpoints_are(given, expected, tmp_path):
    validation = Scored([0.1] * 40, every=1)
    last = expected[-1]
    trained(tmp_path, last, validation, max_steps=last, **given)
    assert sorted(validation.seen) == expected
    rows = history(tmp_path)
    assert [int(row["step"]) for row in rows if row["score"]] == expected
    assert all(float(row["loss"]) > 0 for row in rows)


def test_a_row_has_the_mean_loss_of_the_steps_since_the_row_before(tmp_path):
    """A rate so small that no weight changes: the loss is a function of the batch alone."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    given = FitOptions(steps_per_save=6, steps_per_look=4, max_steps=12, learning_rate=1e-30)
    tokens = itertools.repeat(21)
    fit(Plan(lambda: model, LOSS, batches, 12, given, tmp_path, tokens_from=lambda step: tokens))
    losses, begin = [float(LOSS(y, model(x))) for x, y in batches(0)], 0
    for row, end in zip(history(tmp_path), [4, 6, 8, 12], strict=True):
        assert int(row["step"]) == end
        assert float(row["loss"]) == pytest.approx(np.mean(losses[begin:end]), rel=1e-5)
        begin = end


def test_more_looks_than_checkpoints_are_told(tmp_path, capsys):
    plain = FitOptions(steps_per_save=5, looks=7)
    fit(Plan(classifier, LOSS, batches, 10, plain, tmp_path, validation=Scored()))
    told = " ".join(capsys.readouterr().out.split())
    assert "2 looks, not 7: --looks are at checkpoints; choose --steps-per-look, or a sma" in told


def test_the_bar_shows_the_loss_and_the_tokens_of_a_second():
    progress = Progress(10, 0, iter([21, 5]), batches_per_step=2)
    progress.set_model(classifier())
    progress.on_train_begin()
    for loss in (0.7, 0.5):
        progress.on_train_batch_end(0, {"loss": loss})
    progress.close()
    [task] = progress.bar.tasks
    assert re.fullmatch(r"training, loss 0\.5000, [\d,]+ tokens/s", task.description)
    assert (task.completed, task.total) == (1, 10)
    assert (progress.take_tokens(), progress.take_tokens()) == (26, 0)


def test_a_full_disk_gets_one_line_and_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    def save(self, path, *_, **__):
        if int(self.optimizer.iterations) == 15:
            Path(path).write_bytes(b"PK half")
            raise OSError(28, "No space left on device")
        original(self, path)

    original = keras.Model.save
    monkeypatch.setattr(keras.Model, "save", save)
    with pytest.raises(RunError) as caught:
        trained(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: can not be written at step 15 (No space left on device); the checkpoint of "
        "step 10 is kept. Make room; then give the same command, without --overwrite."
    )
    assert not list(tmp_path.glob(".*"))
    monkeypatch.undo()
    same(trained(tmp_path), trained(tmp_path / "whole"))


KERAS = {
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "sgd": keras.optimizers.SGD,
    "lion": keras.optimizers.Lion,
    "keras-adam": keras.optimizers.Adam,
}


@pytest.mark.parametrize("name", KERAS)
def test_the_name_of_an_optimizer_makes_it(name):
    optimizer = make_optimizer(options(optimizer=name, clip_norm=0.1), 10)
    assert isinstance(optimizer, KERAS[name])
    assert optimizer.global_clipnorm == 0.1


@pytest.mark.parametrize("name", others_long(KERAS))
def test_an_optimizer_trains_as_that_of_keras(name, tmp_path):
    given = {"learning_rate": 0.02, "clip_norm": 0.1, "schedule": "constant", "keep": "last"}
    model = trained(tmp_path, 10, optimizer=name, **given)
    keras.utils.set_random_seed(0)
    expected = classifier()
    rates = keras.optimizers.schedules.PiecewiseConstantDecay(
        [0, 1, 2], [0.0, 0.02 / 3, 0.04 / 3, 0.02]
    )
    optimizer = KERAS[name](rates, global_clipnorm=0.1)
    if name == "adamw":
        optimizer.exclude_from_weight_decay(var_names=["bias"])
    expected.compile(optimizer, LOSS)
    states = [each for each in expected.variables if "seed_generator" in each.path]
    for epoch in range(2):
        for number, state in enumerate(states):
            state.assign([number, epoch])
        expected.fit(batches(5 * epoch), steps_per_epoch=5, shuffle=False, verbose=0)
    for weight, other in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(weight, other, rtol=1e-4, atol=1e-6)
