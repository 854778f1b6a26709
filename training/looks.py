"""Looks: measuring, showing, keeping the best model, and ending a training early."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from seqkeras import files
from seqkeras.training.console import console
from seqkeras.training.run import BEST

if TYPE_CHECKING:
    from seqkeras.training.averages import Averages
    from seqkeras.training.callbacks import Progress
    from seqkeras.training.checkpoint import State
    from seqkeras.training.history import History
    from seqkeras.training.options import FitOptions
    from seqkeras.training.validation import Compared, Validation


class Looks(keras.callbacks.Callback):
    """Keep the history; at every look answer the validation examples, and save the best model.

    What is best, and since when, is in the state, so that a training that goes on decides as one
    that was not stopped. Stands before `Checkpoint`.

    Args:
        folder: the run's, a `Path`.
        state: a `seqkeras.training.checkpoint.State`.
        history: a `seqkeras.training.history.History`.
        progress: a `seqkeras.training.callbacks.Progress`; it counts the steps and the tokens.
        options: a `seqkeras.training.options.FitOptions`.
        num_steps: number of steps of the whole training.
        averages: a `seqkeras.training.averages.Averages`, the weights that are looked at.
        validation: a `seqkeras.training.validation.Validation`, or None.
        looks_first: whether there is a look before the first step.
        report: called with the number and the rank of each look, and what looks are compared by; or
            None.
    """

    def __init__(
        self,
        folder: Path,
        state: State,
        history: History,
        progress: Progress,
        options: FitOptions,
        num_steps: int,
        averages: Averages,
        validation: Validation | None = None,
        looks_first: bool = False,
        report: Callable[[int, list[float], Compared], None] | None = None,
    ):
        super().__init__()
        self.looks_first, self.report = looks_first, report
        self.averages = averages
        self.folder, self.state, self.history, self.progress = folder, state, history, progress
        self.options, self.num_steps, self.validation = options, num_steps, validation
        self.went_on = time.monotonic()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        if self.looks_first and self.validation is not None and not self.state.rows:
            row = {"step": 0}
            console.print(f"  step 0 of {self.num_steps:,}: {', '.join(self._look(row))}")
            self.state.rows.append(row)
            self.went_on = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        every, step = self.options.steps_per_look, self.progress.step
        ends = batch + 1 == self.params["steps"] or step == self.num_steps  # then the epoch looks
        if every is None or ends or step == self.state.step or step % every:
            return
        if hasattr(self.model, "jax_state_sync"):  # JAX's weights are elsewhere within an epoch
            self.model.jax_state_sync()
        self._add_row(logs)
        self.model.reset_metrics()  # the next row is of the steps that follow

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        if self.progress.step > self.state.step:  # else patience ended the epoch after a look
            self.averages.add(self.model)
            self._add_row(logs)

    def _add_row(self, logs):
        """Add the row of the steps since the last one, with a look if there is to be one."""
        before, self.state.step = self.state.step, self.progress.step
        row = {"step": self.state.step, **{name: float(value) for name, value in logs.items()}}
        row["learning_rate"] = float(ops.convert_to_numpy(self.model.optimizer.learning_rate))
        spent = time.monotonic() - self.went_on
        self.state.seconds += spent
        row["seconds"] = round(self.state.seconds, 3)
        row["tokens_per_second"] = round(self.progress.take_tokens() / spent, 1)
        self.state.rows.append(row)
        if self._is_due(before, self.state.step):
            words = [f"{name} {float(value):.4f}" for name, value in logs.items()]
            if self.validation is not None:
                with self.averages.in_place(self.model):
                    words += self._look(row)
            step = f"step {self.state.step:,} of {self.num_steps:,}"
            console.print(f"  {step}: {', '.join(words)}")
            self.history.write_look()
        self.history.write()
        self.went_on = time.monotonic()
        if self.is_over():
            self.model.stop_training = True

    def is_over(self) -> bool:
        """Return whether the last looks were as many without a better model as the patience
        allows."""
        patience = self.options.patience
        return bool(patience and self.state.looks and self.state.looks_since_best() >= patience)

    def _is_due(self, before, step):
        if step == self.num_steps:
            return True
        if self.options.steps_per_look is not None:
            return step % self.options.steps_per_look == 0
        looks = self.options.looks
        return looks * step // self.num_steps > looks * before // self.num_steps

    def _look(self, row):
        """Add the numbers to a row and save the model if it is the best; the numbers in words."""
        look = self.validation(self.model)
        row |= look.measured | look.scores
        self.state.looks.append([row["step"], self.validation.rank(look)])
        self.state.samples.append(f"step {row['step']:,}\n{look.samples}")
        if self.state.best_step() == row["step"]:
            with files.written_aside(self.folder / BEST) as aside:
                self.model.save(aside)
        if self.report is not None:
            by = self.validation.compared_by(look)
            self.report(len(self.state.looks) - 1, self.state.looks[-1][1], by)
        return self.validation.in_words(look)
