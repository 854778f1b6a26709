"""Compile, resume, fit: the one call of `model.fit`."""

import math
import time

import keras
from keras import ops

from seqkeras.runs import CHECKPOINT, RunError
from seqkeras.terminal import one_line
from training.callbacks import Checkpoint, DivergedError, Progress, Reseed, StopAtNaN
from training.console import console


def fit(
    build_model,
    loss,
    batches_from,
    num_steps,
    options,
    folder,
    metrics=(),
    measure=None,
    validate=None,
):
    """Train a model, from the checkpoint in the folder if there is one.

    Adam with a linear warm-up and a cosine decay to zero. Steps, batches and random numbers are
    functions of the seed, so a run that was stopped ends as one that was not.

    Args:
        build_model: () -> a model that returns logits, built.
        loss: of `compile`.
        batches_from: step -> what `model.fit` takes, the (inputs, targets) from that step on.
        num_steps: of the whole training; at most one more for each checkpoint.
        options: `FitOptions`.
        folder: where the checkpoint lies.
        metrics: list of Keras metrics, measured on the training batches.
        measure: model -> dictionary of numbers, or None; before `validate`.
        validate: model -> dictionary of scores between 0 and 1, or None.

    Returns:
        The trained model.

    Raises:
        RunError: if the checkpoint is damaged, or the loss or a weight is not finite; then the last
            checkpoint is kept.
    """
    keras.utils.set_random_seed(options.seed)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
    epochs = math.ceil(num_steps / options.steps_per_save)
    steps_per_epoch = math.ceil(num_steps / epochs)
    num_steps = epochs * steps_per_epoch
    checkpoint = folder / CHECKPOINT
    if checkpoint.exists():
        model = load_model(checkpoint, "begin again with --overwrite")
    else:
        model = build_model()
        model.compile(
            optimizer=make_optimizer(options, num_steps),
            loss=loss,
            metrics=list(metrics) or None,
            jit_compile=False,  # measured: slower with XLA; and cuDNN needs it off
        )
    done = int(ops.convert_to_numpy(model.optimizer.iterations))
    if done == num_steps:
        return model
    if done:
        console.print(f"  going on from step {done:,} of {num_steps:,}")
    began = time.monotonic()
    progress = Progress(num_steps, done, measure, validate)
    try:
        model.fit(
            batches_from(done),
            initial_epoch=done // steps_per_epoch,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            shuffle=False,
            verbose=0,
            callbacks=[Reseed(options.seed), StopAtNaN(done), progress, Checkpoint(checkpoint)],
        )
    except DivergedError as error:
        saved = (error.step - 1) // steps_per_epoch * steps_per_epoch
        kept = (
            f"the checkpoint of step {saved:,} is kept" if saved else "no checkpoint was made yet"
        )
        raise RunError(
            f"{folder}: {error.what} at step {error.step:,} of {num_steps:,}; {kept}. Choose a "
            "smaller --learning-rate or --clip-norm, and --overwrite or another --out."
        ) from error
    finally:
        progress.close()
    console.print(f"  {num_steps - done:,} steps in {time.monotonic() - began:.0f} s")
    return model


def load_model(path, way_out, **options):
    """A saved model.

    Args:
        path: of the file.
        way_out: what to do if it is damaged, for the error.
        options: as `keras.models.load_model` takes them.

    Raises:
        RunError: if it is damaged.
    """
    try:
        return keras.models.load_model(path, **options)
    except Exception as error:  # what Keras raises depends on the place of the damage
        reason = one_line(str(error) or type(error).__name__)
        raise RunError(f"{path}: damaged ({reason:.200}); {way_out}.") from error


def make_optimizer(options, num_steps):
    """Adam: the learning rate rises over the warm-up, then falls along a cosine to zero."""
    warmup_steps = min(options.warmup_steps, num_steps // 2)
    schedule = keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup_steps else options.learning_rate,
        decay_steps=num_steps - warmup_steps,
        warmup_target=options.learning_rate if warmup_steps else None,
        warmup_steps=warmup_steps,
    )
    return keras.optimizers.Adam(schedule, global_clipnorm=options.clip_norm)
