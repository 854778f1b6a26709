"""Answers of a model after each frame, in memory that does not grow with a recording's length."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from seqkeras.streams import StreamError, Streaming

CHUNK = 512  # frames that are read at once


def step_of(model: keras.Model) -> Callable[..., Any]:
    """Return a function: frames (B, T, ...) and state, or None at first -> answers (B, T, ...) of
    the first output, and state.

    Raises:
        StreamError: if the model can not stream, or looks ahead.
    """
    streaming = Streaming(model)
    if any(streaming.delays.values()):
        raise StreamError(f"{model.name} looks ahead, so that its answers come late.")

    def step(frames, state):
        if state is None:
            state = streaming.initial_state(ops.shape(frames)[0])
        answers, state = streaming(frames, state)
        return next(iter(answers.values())), state

    return step


def streamed(step: Callable[..., Any], frames: np.ndarray) -> np.ndarray:
    """Return the answers (B, T, ...) after each frame of recordings.

    Args:
        step: what `step_of` returned, compiled.
        frames: (B, T, ...).
    """
    answers, state = [], None
    for start in range(0, frames.shape[1], CHUNK):
        outputs, state = step(frames[:, start : start + CHUNK], state)
        answers.append(ops.convert_to_numpy(outputs))
    return np.concatenate(answers, axis=1)
