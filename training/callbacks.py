"""What happens between steps: a checkpoint, a progress bar, a look at validation data."""

import math

import keras
from keras import ops

from seqkeras import files
from training.console import console, progress_bar


class Checkpoint(keras.callbacks.Callback):
    """Save model and optimizer after every epoch, whole or not at all."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_epoch_end(self, epoch, logs=None):
        with files.written_aside(self.path) as aside:
            self.model.save(aside)


class DivergedError(ArithmeticError):
    """Training came to numbers that are not finite.

    Attributes:
        step: at which.
        what: which, in words.
    """

    def __init__(self, step, what):
        super().__init__(f"step {step}: {what}")
        self.step, self.what = step, what


class StopAtNaN(keras.callbacks.Callback):
    """Stop at the first step whose loss is not finite; stands before `Checkpoint`.

    A step whose loss is finite may still leave weights that are not, so these are looked at before
    they are saved.

    Args:
        first_step: where this process begins.
    """

    def __init__(self, first_step=0):
        super().__init__()
        self.step = first_step

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        loss = float(logs["loss"])
        if not math.isfinite(loss):
            raise DivergedError(self.step, f"the loss is {loss}")

    def on_epoch_end(self, epoch, logs=None):
        for variable in (*self.model.variables, *self.model.optimizer.variables):
            if "float" in variable.dtype and not ops.all(ops.isfinite(variable.value)):
                raise DivergedError(self.step, f"{variable.path} is not finite")


class Reseed(keras.callbacks.Callback):
    """Make dropout's random numbers a function of seed and epoch: no checkpoint holds them."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def on_epoch_begin(self, epoch, logs=None):
        states = [
            variable
            for variable in self.model.variables
            if variable.path.endswith("seed_generator_state")
        ]
        for number, state in enumerate(states):
            state.assign([self.seed + number, epoch])


class Progress(keras.callbacks.Callback):
    """A progress bar over all steps, and for each look at the validation data a line with the loss,
    the metrics and the scores.

    Args:
        num_steps: of the whole training.
        first_step: where this process begins.
        measure: model -> dictionary of numbers of the validation data, or None.
        validate: model -> dictionary of scores between 0 and 1, or None.
        looks: how many times to validate over the whole training.
    """

    def __init__(self, num_steps, first_step=0, measure=None, validate=None, looks=5):
        super().__init__()
        self.num_steps = num_steps
        self.step = first_step
        self.measure = measure
        self.validate = validate
        self.looks = looks

    def on_train_begin(self, logs=None):
        self.bar = progress_bar()
        self.task = self.bar.add_task("training", total=self.num_steps, completed=self.step)
        self.bar.start()

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        self.bar.update(self.task, completed=self.step)

    def on_epoch_end(self, epoch, logs=None):
        self.bar.update(self.task, description=f"training, loss {logs['loss']:.4f}")
        before = self.step - self.params["steps"]
        if self.looks * self.step // self.num_steps > self.looks * before // self.num_steps:
            numbers = logs | (self.measure(self.model) if self.measure else {})
            scores = self.validate(self.model) if self.validate else {}
            measured = [f"{name} {value:.4f}" for name, value in numbers.items()]
            shares = [f"{name} {share:.2%}" for name, share in scores.items()]
            line = ", ".join([*measured, *shares])
            console.print(f"  step {self.step:,} of {self.num_steps:,}: {line}")

    def on_train_end(self, logs=None):
        self.close()

    def close(self):
        self.bar.stop()
