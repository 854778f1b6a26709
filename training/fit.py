"""Compile, resume, fit: the one call of `model.fit`."""

import contextlib
import math
import time

import keras

from seqkeras.runs import CHECKPOINT, RunError
from seqkeras.terminal import one_line
from seqkeras.training.averages import Averages
from seqkeras.training.callbacks import DivergedError, Progress, Reseed, StopAtNaN
from seqkeras.training.checkpoint import Checkpoint, State, load_model, restore, saved_step
from seqkeras.training.console import console
from seqkeras.training.first_weights import freeze
from seqkeras.training.history import History
from seqkeras.training.layer_rates import rates_of_layers
from seqkeras.training.looks import Looks
from seqkeras.training.optimizing import make_optimizer
from seqkeras.training.run import BEST
from seqkeras.training.strategies import ONE_DEVICE, choose_operations
from seqkeras.training.wording import counted


def fit(
    build_model,
    loss,
    batches_from,
    num_steps,
    options,
    folder,
    metrics=(),
    validation=None,
    tokens_from=None,
    prepare=None,
    begin=None,
    devices=ONE_DEVICE,
    loss_weights=None,
):
    """Train a model, from the checkpoint in the folder if there is one.

    Steps, batches and random numbers are functions of the seed, so a run that was stopped ends as
    one that was not.

    Args:
        build_model: () -> a model that returns logits, built.
        loss: of `compile`.
        batches_from: step -> what `model.fit` takes, the batches from that step on; there are
            `options.gradient_accumulation` to a step.
        num_steps: of the whole training; where options name no `max_steps`, at most one more for
            each checkpoint.
        options: `FitOptions`.
        folder: where the checkpoint lies.
        metrics: list of Keras metrics, measured on the training batches; or such lists by the name
            of an output.
        validation: a `seqkeras.training.validation.Validation`, or None.
        tokens_from: step -> iterator over the tokens of every batch from that step on, or None.
        prepare: called with the model before it is compiled, or None.
        begin: called when nothing more can be refused, before the folder is read or written.
        devices: a `seqkeras.training.strategies.OneDevice`, or one of its subclasses.
        loss_weights: as of `compile`: a dictionary by the names of outputs, or None.

    Returns:
        The model as the options ask for it, the best or the last; None in a worker that is not
        the chief.

    Raises:
        RunError: if the checkpoint is damaged, the loss or a weight is not finite, or the disk is
            full; then the last checkpoint is kept.
    """
    keras.utils.set_random_seed(options.seed)
    choose_operations(options.xla)
    per_step = options.gradient_accumulation
    epochs = math.ceil(num_steps / options.steps_per_save)
    steps_per_epoch = math.ceil(num_steps / epochs)
    if options.max_steps is None:
        num_steps = epochs * steps_per_epoch
    metrics = metrics or None
    checkpoint = folder / CHECKPOINT
    devices.require_same_step(saved_step(checkpoint))
    with devices.scope():
        with computing_in(options.mixed_precision):
            model = build_model()
        if prepare is not None:
            prepare(model)
        freeze(model, options.freeze)
        model.compile(
            optimizer=make_optimizer(options, num_steps, rates_of_layers(model, options)),
            loss=loss if per_step == 1 else summed(loss),
            loss_weights=loss_weights,
            metrics=metrics,
            jit_compile=options.xla if keras.backend.backend() == "tensorflow" else "auto",
        )
        # Variables that are made while TensorFlow traces the step have it traced once more.
        model.optimizer.build(model.trainable_variables)
        if begin is not None:
            begin()
        state, averaged = restore(checkpoint, model) if checkpoint.exists() else (State(), [])
    averages = Averages(options, averaged)
    done = state.step
    batches = devices.prepare(model, batches_from(done))
    folder = devices.folder(folder)
    if done:
        console.print(f"  going on from step {done:,} of {num_steps:,}")
    began = time.monotonic()
    tokens = None if tokens_from is None else tokens_from(done)
    if options.is_given("looks") and options.steps_per_look is None and epochs < options.looks:
        console.print(
            f"  {counted(epochs, 'looks', 'look')}, not {options.looks:,}: --looks are at "
            "checkpoints; choose --steps-per-look, or a smaller --steps-per-save"
        )
    progress = Progress(num_steps, done, tokens, per_step)
    history = History(folder, state, options.tensorboard)
    looks = Looks(folder, state, history, progress, options, num_steps, averages, validation)
    try:
        if done < num_steps and not looks.is_over():
            model.fit(
                batches,
                initial_epoch=done // steps_per_epoch,
                epochs=epochs,
                steps_per_epoch=steps_per_epoch * per_step,
                shuffle=False,
                verbose=0,
                callbacks=[
                    Reseed(options.seed),
                    StopAtNaN(done, per_step),
                    progress,
                    looks,
                    Checkpoint(folder / CHECKPOINT, state, averages),
                    *devices.callbacks(),
                ],
            )
    except DivergedError as error:
        raise RunError(
            f"{folder}: {error.what} at step {error.step:,} of {num_steps:,}; "
            f"{_kept(error.step - 1, steps_per_epoch)}. Choose a smaller --learning-rate or "
            "--clip-norm, and --overwrite or another --out."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(
            f"{folder}: can not be written at step {progress.step:,} ({one_line(reason):.200}); "
            f"{_kept(progress.step - 1, steps_per_epoch)}. Make room; then give the same command, "
            "without --overwrite."
        ) from error
    finally:
        progress.close()
        history.close()
    console.print(f"  {state.step - done:,} steps in {time.monotonic() - began:.0f} s")
    if looks.is_over():
        console.print(f"  no better model in {options.patience} looks: ended early")
    if not devices.is_chief:
        return None
    weights = averages.of(model)
    if validation is not None and options.keep == "best":
        console.print(f"  the best model is that of step {state.best_step():,}")
        best = load_model(folder / BEST, "begin again with --overwrite", compile=False)
        weights = best.get_weights()
    weights = model.get_weights() if weights is None else weights
    if options.mixed_precision is not None:
        model = build_model()  # in float32
    elif per_step > 1:
        model.compile(model.optimizer, loss, loss_weights, metrics)
    model.set_weights(weights)
    return model


@contextlib.contextmanager
def computing_in(name):
    """Let layers that are made compute in float16 or bfloat16; None leaves them as they are."""
    before = keras.config.dtype_policy()
    if name is not None:
        keras.config.set_dtype_policy(f"mixed_{name}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def summed(loss):
    """Return the loss as a sum, for batches whose weights make the mean over a whole step of it.

    Args:
        loss: a `keras.losses.Loss`, or a dictionary of the outputs' losses.

    Raises:
        RunError: if it is something else.
    """
    if isinstance(loss, dict):
        return {name: summed(own) for name, own in loss.items()}
    if not isinstance(loss, keras.losses.Loss):
        raise RunError("--gradient-accumulation: this task has no loss that adds up over batches.")
    return type(loss).from_config({**loss.get_config(), "reduction": "sum"})


def ignored_by(loss):
    """Return the target that a loss ignores, or several by the names of outputs do; None if they
    count all."""
    first = next(iter(loss.values())) if isinstance(loss, dict) else loss
    return getattr(first, "ignore_class", None)


def _kept(step, steps_per_epoch):
    """Return which checkpoint there is after so many steps."""
    saved = step // steps_per_epoch * steps_per_epoch
    return f"the checkpoint of step {saved:,} is kept" if saved else "no checkpoint was made yet"
