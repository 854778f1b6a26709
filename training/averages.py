"""Averages of weights over a training: what is looked at, and kept, instead of the last weights."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from keras import ops

if TYPE_CHECKING:
    import keras

    from seqkeras.training.options import FitOptions


class Averages:
    """A moving average of the weights, or the mean of the last checkpoints.

        moving    a <- d a + (1 - d) w at each step, d is `options.ema`; the optimizer keeps it
        mean      of the weights of the last `options.average_checkpoints` checkpoints

    Args:
        options: a `seqkeras.training.options.FitOptions`.
        kept: lists of weights, from earlier checkpoints.

    Reference: Polyak and Juditsky 1992, https://doi.org/10.1137/0330046; Vaswani et al. 2017,
    section 6.1, https://arxiv.org/abs/1706.03762
    """

    def __init__(self, options: FitOptions, kept: Sequence[list[np.ndarray]] = ()):
        self.is_moving = options.ema is not None
        self.kept = collections.deque(kept, maxlen=options.average_checkpoints)
        self.is_mean = options.average_checkpoints > 1

    def add(self, model: keras.Model) -> None:
        """Take the weights of a checkpoint into the mean."""
        if self.is_mean:
            self.kept.append(model.get_weights())

    def of(self, model: keras.Model) -> list[np.ndarray] | None:
        """Return the averages of a model's weights, in the form that `set_weights` takes; None
        without any, as before the first checkpoint."""
        if self.is_moving:
            optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
            averages = zip(
                optimizer._trainable_variables, optimizer._model_variables_moving_average
            )
            averaged = {id(variable): average for variable, average in averages}
            return [
                ops.convert_to_numpy(averaged.get(id(variable), variable))
                for variable in model.weights
            ]
        if self.kept:
            return [
                np.mean(same, axis=0, dtype="float64").astype(same[-1].dtype)
                for same in zip(*self.kept)
            ]
        return None

    @contextlib.contextmanager
    def in_place(self, model: keras.Model) -> Iterator[None]:
        """Let a model have the averages; behind the block it has its own weights again."""
        averages = self.of(model)
        if averages is None:
            yield
            return
        trained = model.get_weights()
        model.set_weights(averages)
        try:
            yield
        finally:
            model.set_weights(trained)
