"""The delay of a model that answers each frame as it comes."""

from typing import Any

import keras
import numpy as np
from keras import ops

from seqkeras.streams import Streaming
from seqkeras.training.compiling import OncePerModel

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

    def __call__(
        self, model: keras.Model, inputs: dict, targets: Any, lengths: np.ndarray
    ) -> dict[str, float]:
        """Return name -> the mean delay; nothing where no answer is right at the end.

        Args:
            model: a functional model that streams.
            inputs: "frames", a `seqkeras.data.batches.FrameSequences`.
            targets: (recordings,) integers, or `seqkeras.data.batches.Sequences` of one for each
                frame.
            lengths: (recordings,) numbers of frames.
        """
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
