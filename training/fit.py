"""Compile, resume, fit: the one call of `model.fit`."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras

from seqkeras.quiet import set_seed
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
from seqkeras.training.options import FitOptions
from seqkeras.training.run import BEST
from seqkeras.training.strategies import ONE_DEVICE, OneDevice, operations
from seqkeras.training.wording import counted


@dataclasses.dataclass(frozen=True)
class Plan:
    """A model, its examples, and the length of its training.

    Attributes:
        build_model: () -> a model that returns logits, built.
        loss: loss of `compile`.
        batches_from: step -> what `model.fit` takes, the batches from that step on; there are
            `options.gradient_accumulation` to a step.
        steps: steps of the whole training; `num_steps` may be more.
        options: `FitOptions`.
        folder: where the checkpoint lies.
        metrics: list of Keras metrics, measured on the training batches; or such lists by the name
            of an output.
        loss_weights: loss weights of `compile`: a dictionary by the names of outputs, or None.
        validation: a `seqkeras.training.validation.Validation`, or None.
        looks_first: whether there is a look before the first step.
        report: called with the number and the rank of each look, and what looks are compared by; or
            None.
        stepped: called with the number of each step, and of all steps; or None.
        tokens_from: step -> iterator over the tokens of every batch from that step on, or None.
        prepare: called with the model before it is compiled, or None.
        begin: called when nothing more can be refused, before the folder is read or written.
        devices: a `seqkeras.training.strategies.OneDevice`, or one of its subclasses.
    """

    build_model: Callable
    loss: Any
    batches_from: Callable
    steps: int
    options: FitOptions
    folder: Path
    metrics: Any = ()
    loss_weights: dict | None = None
    validation: Any = None
    looks_first: bool = False
    report: Callable | None = None
    stepped: Callable | None = None
    tokens_from: Callable | None = None
    prepare: Callable | None = None
    begin: Callable | None = None
    devices: OneDevice = ONE_DEVICE

    @property
    def epochs(self) -> int:
        """Checkpoints of the whole training, an epoch of Keras each."""
        return math.ceil(self.steps / self.options.steps_per_save)

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(self.steps / self.epochs)

    @property
    def num_steps(self) -> int:
        """Steps of the whole training: where options name no `max_steps`, whole epochs."""
        whole = self.epochs * self.steps_per_epoch
        return whole if self.options.max_steps is None else self.steps


def fit(plan: Plan) -> keras.Model:
    """Train a model, from the checkpoint in the folder if there is one.

    Steps, batches and random numbers are functions of the seed, so a run that was stopped ends as
    one that was not.

    Args:
        plan: a `Plan`.

    Returns:
        The model as the options ask for it, the best or the last; None in a worker that is not
        the chief.

    Raises:
        RunError: if the checkpoint is damaged, the loss or a weight is not finite, or the disk is
            full; then the last checkpoint is kept.
    """
    set_seed(plan.options.seed)
    with operations(plan.options.xla):
        return _fitted(plan)


def _fitted(plan):
    checkpoint = plan.folder / CHECKPOINT
    plan.devices.require_same_step(saved_step(checkpoint))
    with plan.devices.scope():
        model = _compiled(plan)
        if plan.begin is not None:
            plan.begin()
        state, averaged = restore(checkpoint, model) if checkpoint.exists() else (State(), [])
    averages = Averages(plan.options, averaged)
    _learn(plan, model, state, averages)
    return _kept_model(plan, model, state, averages) if plan.devices.is_chief else None


def _compiled(plan):
    """Return a new model, compiled, with its optimizer's variables."""
    options = plan.options
    with computing_in(options.mixed_precision):
        model = plan.build_model()
    if plan.prepare is not None:
        plan.prepare(model)
    freeze(model, options.freeze)
    model.compile(
        optimizer=make_optimizer(options, plan.num_steps, rates_of_layers(model, options)),
        loss=plan.loss if options.gradient_accumulation == 1 else summed(plan.loss),
        loss_weights=plan.loss_weights,
        metrics=plan.metrics or None,
        jit_compile=options.xla if keras.backend.backend() == "tensorflow" else "auto",
    )
    # Variables that are made while TensorFlow traces the step have it traced once more.
    model.optimizer.build(model.trainable_variables)
    return model


def _learn(plan, model, state, averages):
    """Train a compiled model from the step of a `State` on."""
    options, num_steps, done = plan.options, plan.num_steps, state.step
    per_step = options.gradient_accumulation
    batches = plan.devices.prepare(model, plan.batches_from(done))
    folder = plan.devices.folder(plan.folder)
    if done:
        console.print(f"  going on from step {done:,} of {num_steps:,}")
    began = time.monotonic()
    if options.is_given("looks") and options.steps_per_look is None and plan.epochs < options.looks:
        console.print(
            f"  {counted(plan.epochs, 'looks', 'look')}, not {options.looks:,}: --looks are at "
            "checkpoints; choose --steps-per-look, or a smaller --steps-per-save"
        )
    tokens = None if plan.tokens_from is None else plan.tokens_from(done)
    progress = Progress(num_steps, done, tokens, per_step, plan.stepped)
    history = History(folder, state, options.tensorboard)
    looks = Looks(
        folder,
        state,
        history,
        progress,
        options,
        num_steps,
        averages,
        plan.validation,
        plan.looks_first,
        plan.report,
    )
    with _failing_in_words(plan, progress), contextlib.closing(history):
        if done < num_steps and not looks.is_over():
            model.fit(
                batches,
                initial_epoch=done // plan.steps_per_epoch,
                epochs=plan.epochs,
                steps_per_epoch=plan.steps_per_epoch * per_step,
                shuffle=False,
                verbose=0,
                callbacks=[
                    Reseed(options.seed),
                    StopAtNaN(done, per_step),
                    progress,
                    looks,
                    Checkpoint(folder / CHECKPOINT, state, averages),
                    *plan.devices.callbacks(),
                ],
            )
    console.print(f"  {state.step - done:,} steps in {time.monotonic() - began:.0f} s")
    if looks.is_over():
        console.print(f"  no better model in {options.patience} looks: ended early")


def _kept_model(plan, model, state, averages):
    """Return the model that the run keeps, the best or the last, in float32."""
    options, weights = plan.options, averages.of(model)
    if plan.validation is not None and options.keep == "best":
        console.print(f"  the best model is the model of step {state.best_step():,}")
        best = load_model(plan.folder / BEST, "begin again with --overwrite", compile=False)
        weights = best.get_weights()
    weights = model.get_weights() if weights is None else weights
    if options.mixed_precision is not None:
        model = plan.build_model()  # in float32
    elif options.gradient_accumulation > 1:
        model.compile(model.optimizer, plan.loss, plan.loss_weights, plan.metrics or None)
    model.set_weights(weights)
    return model


@contextlib.contextmanager
def _failing_in_words(plan, progress):
    """Say where a training failed, and which checkpoint is kept; the progress bar is closed."""
    try:
        yield
    except DivergedError as error:
        raise RunError(
            f"{plan.folder}: {error.what} at step {error.step:,} of {plan.num_steps:,}; "
            f"{_kept(error.step - 1, plan.steps_per_epoch)}. Choose a smaller --learning-rate or "
            "--clip-norm, and --overwrite or another --out."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(
            f"{plan.folder}: can not be written at step {progress.step:,} "
            f"({one_line(reason):.200}); {_kept(progress.step - 1, plan.steps_per_epoch)}. Make "
            "room; then give the same command, without --overwrite."
        ) from error
    finally:
        progress.close()


@contextlib.contextmanager
def computing_in(name: str | None) -> Iterator[None]:
    """Let layers that are made compute in float16 or bfloat16; None leaves them as they are."""
    before = keras.config.dtype_policy()
    if name is not None:
        keras.config.set_dtype_policy(f"mixed_{name}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def summed(loss: Any) -> Any:
    """Return the loss as a sum, for batches whose weights make the mean over a whole step of it.

    Args:
        loss: a `keras.losses.Loss`, or a dictionary of the outputs' losses.

    Raises:
        RunError: if it is something else.
    """
    if isinstance(loss, dict):
        return {name: summed(part) for name, part in loss.items()}
    if not isinstance(loss, keras.losses.Loss):
        raise RunError("--gradient-accumulation: this task has no loss that adds up over batches.")
    return type(loss).from_config({**loss.get_config(), "reduction": "sum"})


def ignored_by(loss: Any) -> Any:
    """Return the target that a loss ignores, or several by the names of outputs do; None if they
    count all."""
    first = next(iter(loss.values())) if isinstance(loss, dict) else loss
    return getattr(first, "ignore_class", None)


def _kept(step, steps_per_epoch):
    """Return which checkpoint there is after so many steps."""
    saved = step // steps_per_epoch * steps_per_epoch
    return f"the checkpoint of step {saved:,} is kept" if saved else "no checkpoint was made yet"
