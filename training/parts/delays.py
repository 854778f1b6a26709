"""The delay of a model that answers each frame as it comes."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seqkeras.runs import RunFiles
from seqkeras.streams import Streaming
from seqkeras.training.compiling import OncePerModel
from seqkeras.training.task import Modelling

DELAY = "delay_frames"  # the name of the measure
AT_ONCE = 32  # recordings


class Delays:
    """The mean number of frames until an answer is right, and stays right.

    It is counted from the first frame at which the answer holds: a delay of 1 is an answer that is
    right at once. Of a tag that lasts for several frames, the answer must stay until the tag ends;
    what is wrong at the end is left out.
    """

    def __init__(self) -> None:
        self._answer = OncePerModel(_first_logits)
        self._examples = self._arrays = None

    def __call__(
        self, modelling: Modelling, model: keras.Model, examples: list[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return name -> the mean delay; nothing where no answer is right at the end, and of a
        model that is not causal or reads no frames.

        Args:
            modelling: the task's, whose targets are (recordings,) integers, or one for each frame.
            model: its model.
            examples, run: see `Modelling.measure`.
        """
        if not (modelling.reading.frames and modelling.options.causal):
            return {}
        if self._examples is not examples:  # which are the same at each look
            self._examples, self._arrays = examples, modelling.arrays(examples, run)
        inputs, targets, lengths = self._arrays
        found = []
        for start in range(0, len(lengths), AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, len(lengths)))
            logits = self._answer(model)(inputs["frames"][rows])
            answers = ops.convert_to_numpy(logits).argmax(axis=-1)
            for target, answer, length in zip(targets[rows], answers, lengths[rows]):
                target = np.broadcast_to(target, answer.shape)[:length]
                found += delays_of(answer[:length], target)
        return {DELAY: float(np.mean(found))} if found else {}


def delays_of(answers: np.ndarray, targets: np.ndarray) -> list[int]:
    """Return a list of the delays of each run of equal targets, of those right at their ends.

    Args:
        answers, targets: (frames,) integers.
    """
    starts = np.flatnonzero(np.diff(targets, prepend=targets[0] - 1))
    found = []
    for start, end in zip(starts, [*starts[1:], len(targets)]):
        wrong = np.flatnonzero(answers[start:end] != targets[start:end])
        if not len(wrong):
            found.append(1)
        elif wrong[-1] < end - start - 1:
            found.append(int(wrong[-1]) + 2)
    return found


def _first_logits(model):
    streaming = Streaming(model)

    def logits(frames):
        answers, _ = streaming(frames, streaming.initial_state(ops.shape(frames)[0]))
        return next(iter(answers.values()))

    return logits
