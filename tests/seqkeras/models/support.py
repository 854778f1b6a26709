"""What the tests of several models share."""

import keras
import numpy as np
import pytest

from tests.arrays import BACKEND

needs_float64 = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="Keras multiplies float64 matrices as such on TensorFlow only"
)


def compiled(model, inputs, loss, learning_rate, **options):
    """The model, ready for `fit`; all that could make Keras trace its step twice is built."""
    model({name: each[:2] for name, each in inputs.items()})
    options = {"jit_compile": BACKEND == "jax"} | options
    model.compile(keras.optimizers.Adam(learning_rate), loss, **options)
    model.optimizer.build(model.trainable_variables)
    return model


def losses_by_heart(model, inputs, targets, loss, steps, learning_rate):
    """The loss of one batch before and after so many steps on it."""
    compiled(model, inputs, loss, learning_rate)
    losses = [np.ravel(model.train_on_batch(inputs, targets))[0] for _ in range(steps)]
    return losses[0], losses[-1]
