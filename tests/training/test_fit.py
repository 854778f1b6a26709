"""Numbers that are not finite stop a training, and the last good checkpoint stays."""

import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from seqkeras.runs import RunError
from seqkeras.training.callbacks import DivergedError, StopAtNaN
from seqkeras.training.fit import Plan, fit
from seqkeras.training.options import FitOptions

OPTIONS = FitOptions(steps_per_save=5, warmup_steps=0)
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def classifier():
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])


def batches(wrong_step, wrong):
    """Step -> batches, one of which holds a number that is wrong."""

    def batches_from(done):
        x = np.ones((20, 7, 3), "float32")
        x[wrong_step - 1, 0, 0] = wrong
        y = np.ones((20, 7), "int64")
        return tf.data.Dataset.from_tensor_slices((x[done:], y[done:]))

    return batches_from


def test_a_loss_that_is_not_finite_names_its_step_and_keeps_the_last_checkpoint(tmp_path):
    with pytest.raises(RunError) as caught:
        fit(Plan(classifier, LOSS, batches(13, np.nan), 20, OPTIONS, tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}: the loss is nan at step 13 of 20; the checkpoint of step 10 is kept. Choose "
        "a smaller --learning-rate or --clip-norm, and --overwrite or another --out."
    )
    kept = keras.models.load_model(tmp_path / "checkpoint.keras")
    assert int(kept.optimizer.iterations.numpy()) == 10
    assert all(np.isfinite(each.numpy()).all() for each in kept.weights)


def test_a_loss_that_is_not_finite_at_once_leaves_no_checkpoint(tmp_path):
    with pytest.raises(RunError, match="loss is nan at step 2 of 20; no checkpoint was made yet."):
        fit(Plan(classifier, LOSS, batches(2, np.inf), 20, OPTIONS, tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", ["config.json", "model.weights.h5"])
def test_a_checkpoint_that_lost_a_part_is_refused(part, tmp_path):
    fit(Plan(classifier, LOSS, batches(20, 0.0), 5, OPTIONS, tmp_path))
    checkpoint = tmp_path / "checkpoint.keras"
    with zipfile.ZipFile(checkpoint) as whole:
        parts = {each: whole.read(each) for each in whole.namelist() if each != part}
    with zipfile.ZipFile(checkpoint, "w") as damaged:
        for name, content in parts.items():
            damaged.writestr(name, content)
    with pytest.raises(RunError, match="checkpoint.keras: damaged .*; begin again with --overwrit"):
        fit(Plan(classifier, LOSS, batches(20, 0.0), 10, OPTIONS, tmp_path))


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = classifier()
    model.compile("adam")
    stop = StopAtNaN(first_step=10)
    stop.set_model(model)
    stop.on_train_batch_end(0, {"loss": 0.5})
    stop.on_epoch_end(0)
    model.layers[0].bias.assign([1.0, np.inf])
    with pytest.raises(DivergedError, match="^step 11: .*bias is not finite$"):
        stop.on_epoch_end(0)
