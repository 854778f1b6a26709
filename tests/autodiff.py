"""Derivatives of functions of tensors, by the automatic differentiation of each backend."""

import keras
from keras import ops

from tests.arrays import BACKEND, numbers


def gradients_of(function, values):
    """Of `function(values)`, a number, by each of the values: a list of arrays."""
    values = [ops.convert_to_tensor(each) for each in values]
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(values)
            result = function(values)
        return numbers(tape.gradient(result, values, unconnected_gradients="zero"))
    if BACKEND == "torch":
        import torch

        values = [each.requires_grad_() for each in values]
        gradients = torch.autograd.grad(function(values), values, allow_unused=True)
        return [
            numbers(ops.zeros_like(value) if gradient is None else gradient)
            for gradient, value in zip(gradients, values, strict=True)
        ]
    import jax

    return numbers(jax.grad(function)(values))


def squared_slopes(function, values):
    """The sum of squares of the gradients of `function(values)`, to be differentiated again."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(values)
            result = function(values)
        slopes = tape.gradient(result, values)
    elif BACKEND == "torch":
        import torch

        slopes = torch.autograd.grad(function(values), values, create_graph=True)
    else:
        import jax

        slopes = jax.grad(function)(values)
    return sum(ops.sum(each * each) for each in slopes)


def outputs_and_gradients(layer, function, values):
    """Of `function(values)`, a number and tensors: the tensors, and the number's gradients.

    They are by the layer's trainable weights, then by the values.
    """
    weights, values = layer.trainable_variables, [ops.convert_to_tensor(each) for each in values]
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(values)
            result, outputs = function(values)
        sources = [*(each.value for each in weights), *values]
        gradients = tape.gradient(result, sources, unconnected_gradients="zero")
        return numbers((outputs, gradients))
    if BACKEND == "torch":
        import torch

        values = [each.requires_grad_() for each in values]
        result, outputs = function(values)
        sources = [*(each.value for each in weights), *values]
        return numbers((outputs, list(torch.autograd.grad(result, sources))))
    import jax

    def result_of(own, values):
        with keras.StatelessScope(state_mapping=list(zip(weights, own, strict=True))):
            return function(values)

    gradient = jax.jit(jax.grad(result_of, argnums=(0, 1), has_aux=True))
    (by_weights, by_values), outputs = gradient([each.value for each in weights], values)
    return numbers((outputs, [*by_weights, *by_values]))
