"""Derivatives of functions of tensors, by the automatic differentiation of each backend."""

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
