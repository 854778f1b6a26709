"""Callbacks of `model.fit`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from seqkeras.spreading import spread
from seqkeras.terminal import one_line

__all__ = ["AnswerMetrics"]

MOST_CHARACTERS = 300  # of a text in a sample


class AnswerMetrics(keras.callbacks.Callback):
    """Metrics of a model's answers to validation inputs, such as BLEU or F1, after every epoch.

        logs["val_NAME"] = metrics[NAME](answer(model, inputs), targets)

    Callbacks after this one in the list read the metrics in the logs:
    `ModelCheckpoint("best.keras", monitor="val_bleu", mode="max", save_best_only=True)`,
    `EarlyStopping` and `CSVLogger`. The history that `fit` returns has them too.

    Args:
        answer: (model, inputs) -> a list of answers, one for each input.
        inputs, targets: lists of validation examples.
        metrics: name -> (answers, targets) -> number, such as the functions of `seqkeras.metrics`.
        samples: number of examples, spread over all targets, whose input, target and answer are
            written.
        file: path of a text file, to which samples are appended; None prints them.

    Raises:
        ValueError: if there is no input, or inputs, targets and answers differ in number.

    Example:
        >>> import keras, numpy as np
        >>> from seqkeras.callbacks import AnswerMetrics
        >>> from seqkeras.metrics import exact_match
        >>> answer = lambda model, inputs: ["even" for number in inputs]
        >>> scored = AnswerMetrics(answer, [2, 3], ["even", "odd"], {"exact_match": exact_match})
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(np.ones((4, 3)), np.ones(4), callbacks=[scored], verbose=0)
        >>> history.history["val_exact_match"]
        [0.5]
    """

    def __init__(
        self,
        answer: Callable[..., Sequence[Any]],
        inputs: Sequence[Any],
        targets: Sequence[Any],
        metrics: Mapping[str, Callable[..., float]],
        samples: int = 0,
        file: Path | str | None = None,
    ):
        super().__init__()
        if not inputs or len(inputs) != len(targets):
            raise ValueError(
                "AnswerMetrics: there must be as many targets as inputs, one at least; received "
                f"{len(targets)} and {len(inputs)}."
            )
        self.answer, self.metrics = answer, metrics
        self.inputs, self.targets = inputs, targets
        self.shown, self.file = sorted(spread(targets)[:samples]), file

    def on_epoch_end(self, epoch, logs=None):
        answers = self.answer(self.model, self.inputs)
        if len(answers) != len(self.inputs):
            raise ValueError(
                f"AnswerMetrics: answer must give an answer for each of {len(self.inputs)} inputs; "
                f"received {len(answers)}."
            )
        for name, metric in self.metrics.items():
            logs[f"val_{name}"] = float(metric(answers, self.targets))
        if self.shown:
            self._write(f"epoch {epoch + 1}\n{self._samples(answers)}")

    def _samples(self, answers):
        named = {"input": self.inputs, "target": self.targets, "answer": answers}
        return "\n".join(
            sample_lines({name: rows[index] for name, rows in named.items()})
            for index in self.shown
        )

    def _write(self, text):
        if self.file is None:
            print(f"\n{text}")
            return
        with open(self.file, "a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def sample_lines(parts):
    """Return a line for each part of an example, name -> what it is, cut after 300 characters."""
    return "".join(f"  {name:8}{_short(part)}\n" for name, part in parts.items())


def _short(part):
    text = one_line(part)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
