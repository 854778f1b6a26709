"""Callbacks between steps: random numbers, a progress bar, an end at a loss that is not finite."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
from keras import ops

from seqkeras.training.console import progress_bar


class DivergedError(ArithmeticError):
    """Training came to numbers that are not finite.

    Attributes:
        step: at which.
        what: which, in words.
    """

    def __init__(self, step: int, what: str):
        super().__init__(f"step {step}: {what}")
        self.step, self.what = step, what


class StopAtNaN(keras.callbacks.Callback):
    """Stop at the first step whose loss is not finite; stands before `Checkpoint`.

    A step whose loss is finite may still leave weights that are not, so these are looked at before
    they are saved.

    Args:
        first_step: where this process begins.
        batches_per_step: batches whose gradients make a step.
    """

    def __init__(self, first_step: int = 0, batches_per_step: int = 1):
        super().__init__()
        self.step, self.batches, self.batches_per_step = first_step, 0, batches_per_step

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.step += self.batches % self.batches_per_step == 0
        self.batches += 1
        loss = float(logs["loss"])
        if not math.isfinite(loss):
            raise DivergedError(self.step, f"the loss is {loss}")

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        for variable in (*self.model.variables, *self.model.optimizer.variables):
            if "float" in variable.dtype and not ops.all(ops.isfinite(variable.value)):
                raise DivergedError(self.step, f"{variable.path} is not finite")


class Reseed(keras.callbacks.Callback):
    """Make dropout's random numbers a function of seed and epoch: no checkpoint holds them."""

    def __init__(self, seed: int):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        variables = self.model.variables
        states = [state for state in variables if state.path.endswith("seed_generator_state")]
        for number, state in enumerate(states):
            state.assign([self.seed + number, epoch])


class Progress(keras.callbacks.Callback):
    """A progress bar over all steps with the loss and the tokens of a second; it counts both, and
    ends the training at its last step.

    Args:
        num_steps: number of steps of the whole training.
        first_step: where this process begins.
        tokens: iterator over the tokens of every batch from there on, or None.
        batches_per_step: batches whose gradients make a step.
        stepped: called with the number of each step, and of all steps; or None.
    """

    def __init__(
        self,
        num_steps: int,
        first_step: int = 0,
        tokens: Iterator[int] | None = None,
        batches_per_step: int = 1,
        stepped: Callable[[int, int], None] | None = None,
    ):
        super().__init__()
        self.num_steps, self.step = num_steps, first_step
        self.batches, self.batches_per_step = 0, batches_per_step
        self.tokens = itertools.repeat(0) if tokens is None else tokens
        self.counted, self.stepped = 0, stepped
        self.bar = progress_bar()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        self.task = self.bar.add_task("training", total=self.num_steps, completed=self.step)
        self.bar.start()
        self.began, self.shown = time.monotonic(), 0

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.batches += 1
        self.step += self.batches % self.batches_per_step == 0
        tokens = next(self.tokens)
        self.counted, self.shown = self.counted + tokens, self.shown + tokens
        speed = self.shown / (time.monotonic() - self.began)
        words = f"training, loss {float(logs['loss']):.4f}, {speed:,.0f} tokens/s"
        self.bar.update(self.task, completed=self.step, description=words)
        if self.stepped is not None:
            self.stepped(self.step, self.num_steps)
        if self.step >= self.num_steps:
            self.model.stop_training = True

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        self.close()

    def take_tokens(self) -> int:
        """Return the tokens since this was last asked for."""
        taken, self.counted = self.counted, 0
        return taken

    def close(self) -> None:
        self.bar.stop()
