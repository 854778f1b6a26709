"""The delay of a model that answers each frame as it comes."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from seqkeras.runs import RunFiles
from seqkeras.training.compiling import OncePerModel
from seqkeras.training.console import console
from seqkeras.training.streamed import step_of, streamed
from seqkeras.training.task import Modelling
from seqkeras.training.validation import LOSS

DELAY = "delay_frames"  # the name of the measure
AT_ONCE = 32  # recordings


class Delays:
    """The mean number of frames until an answer is right, and stays right.

    It is counted from the first frame at which the answer holds: a delay of 1 is an answer that is
    right at once. Of a tag that lasts for several frames, the answer must stay until the tag ends;
    what is wrong at the end is left out.

    Args:
        has_loss: whether to measure the loss of the last answer, too.
    """

    def __init__(self, has_loss: bool = False) -> None:
        self.has_loss = has_loss
        self._step = OncePerModel(step_of)
        self._examples = self._arrays = None

    def __call__(
        self, modelling: Modelling, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return name -> the loss, and the mean delay where an answer is right at the end; nothing
        of a model that is not causal or reads no frames.

        Args:
            modelling: the task's, whose targets are (recordings,) integers, or one for each frame.
            model: its model.
            examples, run: see `Modelling.measure`.
        """
        if not modelling.streams:
            return {}
        if self._examples is not examples:  # which are the same at each look
            with console.capture():  # what `arrays` prints was said of the training examples
                self._examples, self._arrays = examples, modelling.arrays(examples, run)
        inputs, targets, lengths = self._arrays
        delays, total = [], 0.0
        for start in range(0, len(lengths), AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, len(lengths)))
            logits = streamed(self._step(model), inputs["frames"][rows])
            for target, answer, length in zip(targets[rows], logits.argmax(-1), lengths[rows]):
                target = np.broadcast_to(target, answer.shape)[:length]
                delays += delays_of(answer[:length], target)
            if self.has_loss:
                last = logits[np.arange(len(rows)), lengths[rows] - 1]
                total += len(rows) * float(modelling.loss()(targets[rows], last))
        measured = {LOSS: total / len(lengths)} if self.has_loss else {}
        return measured | ({DELAY: float(np.mean(delays))} if delays else {})


def delays_of(answers: np.ndarray, targets: np.ndarray) -> list[int]:
    """Return a list of the delays of each run of equal targets, of those right at their ends.

    Args:
        answers, targets: (frames,) integers.
    """
    starts = np.flatnonzero(np.diff(targets, prepend=targets[0] - 1))
    delays = []
    for start, end in zip(starts, [*starts[1:], len(targets)]):
        wrong = np.flatnonzero(answers[start:end] != targets[start:end])
        if not len(wrong):
            delays.append(1)
        elif wrong[-1] < end - start - 1:
            delays.append(int(wrong[-1]) + 2)
    return delays
