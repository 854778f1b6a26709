"""What the tests of several models share."""

import keras
import pytest

from seqkeras.models import Bert
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


SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 3, "feed_forward_dim": 11}


def bert(vocab_size=17, **options):
    """The small encoder of these tests."""
    return Bert(vocab_size, **SIZES | {"max_length": 13} | options)
