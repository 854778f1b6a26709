"""A look at the validation examples while a model trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from keras import tree

from seqkeras.callbacks import sample_lines
from seqkeras.data.batches import Batches
from seqkeras.data.batching import InOrder
from seqkeras.runs import RunError
from seqkeras.spreading import spread
from seqkeras.targets import counts
from seqkeras.training.console import console
from seqkeras.training.fit import ignored_by

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.training.task import Modelling, Task

LOSS = "validation_loss"
SHOWN = 5  # examples in samples.txt


class Look(NamedTuple):
    """Result of a look.

    Attributes:
        measured: name -> number: the loss, and what `Modelling.measure` gives.
        scores: name -> number, from `Scoring.validation_scores`.
        samples: inputs, targets and answers of a few examples, a text.
    """

    measured: dict
    scores: dict
    samples: str


class Compared(NamedTuple):
    """What looks are compared by.

    Attributes:
        name: of a score.
        lower: whether a lower score is better; a rank then has its negative.
    """

    name: str
    lower: bool


class Validation:
    """Model -> `Look`, and which of two looks is the better.

    Args:
        task: a `seqkeras.training.task.Task`.
        examples: examples of validation.
        run: a `seqkeras.runs.RunFiles`.
        answer: answer of `seqkeras.training.answering`.
    """

    def __init__(
        self, task: Task, examples: Sequence[Any], run: RunFiles, answer: Callable[..., Any]
    ):
        self.options, self.modelling, self.scoring = task.options, task.modelling, task.scoring
        self.examples, self.run, self.answer = examples, run, answer
        self.answered = self.scoring.looked_at(examples)
        targets = [example.target for example in self.answered]
        self.shown = sorted(spread(targets)[:SHOWN])
        self.has_loss = self.modelling.validation_loss
        self.loss = Loss(self.modelling, examples, run) if self.has_loss else lambda model: {}

    def __call__(self, model: keras.Model) -> Any:
        loss = self.loss(model)
        model = self.modelling.trained(model)
        measured, scores, answers = self._scores(model)
        return Look(loss | measured, scores, self._samples(model, answers))

    def _scores(self, model):
        measured = self.modelling.measure(model, self.examples, self.run)
        answers = self.answer(model, [example.text for example in self.answered])
        return measured, self.scoring.validation_scores(self.answered, answers), answers

    def require_best(self, model: keras.Model) -> None:
        """Ask a model that has learned nothing for its scores, if the options name one as the best.

        Raises:
            RunError: if there is no score of that name.
        """
        wanted, losses = self.options.best_by, [LOSS] if self.has_loss else []
        if wanted is not None and wanted not in losses:
            measured, scores, _ = self._scores(self.modelling.trained(model))
            self._best([*scores, *losses, *measured])

    def _best(self, names):
        """Return the name that the options or the task ask for, or the first; capitals and signs
        may differ."""
        wanted = self.options.best_by or self.scoring.best_by
        if wanted is None:
            return next(iter(names))
        matching = [name for name in names if _plain(name) == _plain(wanted)]
        if not matching:
            raise RunError(
                f"--best-by must be a validation score, {', '.join(names)}; received {wanted!r}."
            )
        return matching[0]

    def compared_by(self, look: Look) -> Compared:
        """Return what looks like this one are compared by."""
        name = self._best([*look.scores, *look.measured])
        return Compared(name, name == LOSS or name in self.scoring.lower_is_better)

    def rank(self, look: Look) -> list[float]:
        """Return the score by which looks are compared; ties go to the lower loss."""
        named = look.scores | look.measured
        name, lower = self.compared_by(look)
        value, loss = -named[name] if lower else named[name], -named.get(LOSS, 0.0)
        return [-math.inf if math.isnan(number) else number for number in (value, loss)]

    def in_words(self, look: Look) -> list[str]:
        """Return the numbers of a look for the terminal."""
        measured = [f"{name} {value:.4f}" for name, value in look.measured.items()]
        formats = self.scoring.score_formats
        scores = [
            f"{name} {value:{formats.get(name, '.2%')}}" for name, value in look.scores.items()
        ]
        return [*measured, *scores]

    def _samples(self, model, answers):
        examples, answers = (
            [rows[index] for index in self.shown] for rows in (self.answered, answers)
        )
        samples = self.scoring.samples(model, self.run, examples, answers)
        return "\n".join(map(sample_lines, samples))


class Loss:
    """Model -> {"validation_loss"}, the mean over all targets that count."""

    def __init__(self, modelling: Modelling, examples: Sequence[Any], run: RunFiles):
        with console.capture():  # what `arrays` prints was said of the training examples
            inputs, targets, lengths = modelling.arrays(examples, run)
        self.batches = Batches(inputs, targets, InOrder(lengths, modelling.options.batch_size))
        self.loss = modelling.loss()
        self.ignored = ignored_by(self.loss)
        if modelling.options.gradient_accumulation > 1:  # the loss is a sum then
            self.batches = self.batches.in_groups(1, self.ignored)

    def __call__(self, model: keras.Model) -> Any:
        total = weight = 0.0
        for batch in self.batches.from_step(0):
            model.reset_metrics()
            mean = float(model.test_on_batch(*batch, return_dict=True)["loss"])
            counted = self._count(batch[1])
            total, weight = total + counted * mean, weight + counted
        model.reset_metrics()
        return {LOSS: total / weight}

    def _count(self, targets):
        """Return the number of targets that are not the `ignore_class`, or of rows if the loss has
        none; the first of several outputs is counted."""
        if self.ignored is None:
            return len(tree.flatten(targets)[0])
        if isinstance(self.loss, dict):
            targets = targets[next(iter(self.loss))]
        return int(np.sum(counts(targets, self.ignored)))


def _plain(name):
    return name.casefold().replace("_", " ").replace("'", "")
