"""Arrays for tests, and the little in which the backends differ."""

import keras
import numpy as np
import pytest
from keras import ops, tree

BACKEND = keras.backend.backend()
# What compiles a model for a few steps: TensorFlow traces them for longer than it computes them.
FEW_STEPS = {"jit_compile": True} if BACKEND == "jax" else {"run_eagerly": BACKEND == "tensorflow"}
needs_tensorflow = pytest.mark.skipif(
    BACKEND != "tensorflow", reason=f"graphs are TensorFlow's; this backend is {BACKEND}"
)


def floats(*shape, seed=0):
    """Normal numbers: a function of shape and seed."""
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32")


def right_padded(lengths, length):
    """(B, length) mask of so many real steps."""
    return np.arange(length) < np.array(lengths)[:, None]


def close(actual, expected, rtol=1e-5, atol=1e-6):
    """Assert that tensors, or lists and tuples of them, are the same but for rounding."""
    for each, other in zip(tree.flatten(actual), tree.flatten(expected), strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(each), ops.convert_to_numpy(other), rtol=rtol, atol=atol
        )


def numbers(tensors):
    """The same structure, of NumPy arrays."""
    return tree.map_structure(ops.convert_to_numpy, tensors)


def randomize(layer, seed=0):
    """Give every weight random numbers, biases too, so that none can be left out unseen."""
    for index, weight in enumerate(layer.weights):
        weight.assign(0.5 * floats(*weight.shape, seed=100 * seed + index))
    return layer


def built(layer, *shapes):
    """A layer or model with random weights for inputs of these shapes."""
    layer.build(*shapes or (None,))
    return randomize(layer)


def gradients(layer, function):
    """Of `function(layer)`, a number, by the layer's trainable weights."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = function(layer)
        return numbers(tape.gradient(loss, [each.value for each in layer.trainable_weights]))
    if BACKEND == "torch":
        import torch

        values = [each.value for each in layer.trainable_weights]
        return numbers(list(torch.autograd.grad(function(layer), values)))
    import jax

    def loss_of(values):
        pairs = zip(layer.trainable_variables, values, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            return function(layer)

    return numbers(jax.jit(jax.grad(loss_of))([each.value for each in layer.trainable_variables]))
