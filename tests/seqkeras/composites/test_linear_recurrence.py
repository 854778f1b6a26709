import functools

import numpy as np
import pytest
from keras import ops

from seqkeras.composites import linear_recurrence
from tests import references
from tests.arrays import BACKEND, close, floats, needs_tensorflow, numbers
from tests.autodiff import gradients_of, squared_slopes

B, U = 2, 3
CHUNK = 16
# Within a chunk, its end, just over it, more chunks, more chunks of chunks.
LENGTHS = (1, CHUNK - 3, CHUNK, CHUNK + 1, 3 * CHUNK + 5, CHUNK * CHUNK + 7)
# The other backends make float32 of float64 arrays, but where they are told not to.
DTYPE, TOLERANCE = ("float64", 1e-9) if BACKEND == "tensorflow" else ("float32", 1e-5)
every_length = pytest.mark.parametrize("length", LENGTHS)
both_ways = pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])


def tensors(length):
    a = 1 / (1 + np.exp(-3 * floats(B, length, U)))
    return [each.astype(DTYPE) for each in (a, floats(B, length, U, seed=1), floats(B, U, seed=2))]


def masks(length):
    whole = np.ones((B, length), bool)
    right = np.arange(length) < np.array([[length], [(length + 1) // 2]])
    holes = np.random.default_rng(length).random((B, length)) < 0.6
    empty = right & np.array([[True], [False]])
    return [None, whole, right, right[:, ::-1], holes, empty]


def one_step_after_the_other(a, b, mask, initial_state, reverse):
    """The formula in Keras, for autodiff: (B, T, U)."""
    h, outputs = initial_state, [None] * a.shape[1]
    for t in reversed(range(a.shape[1])) if reverse else range(a.shape[1]):
        new = a[:, t] * h + b[:, t]
        real = mask[:, t, None]
        h = ops.where(real, new, h)
        outputs[t] = ops.where(real, new, ops.zeros_like(new))
    return ops.stack(outputs, axis=1), h


@every_length
@both_ways
def test_it_is_the_loop_over_the_steps(length, reverse):
    a, b, initial_state = tensors(length)
    for mask in masks(length):
        actual = linear_recurrence(
            *map(ops.convert_to_tensor, (a, b)),
            None if mask is None else ops.convert_to_tensor(mask),
            ops.convert_to_tensor(initial_state),
            reverse=reverse,
        )
        expected = references.linear_recurrence(a, b, mask, initial_state, reverse)
        close(list(actual), list(expected), rtol=TOLERANCE, atol=TOLERANCE)


def loss_of(function, mask, reverse):
    def loss(values):
        a, b, initial_state = values
        outputs, final = function(a, b, ops.convert_to_tensor(mask), initial_state, reverse=reverse)
        return ops.sum(ops.sin(outputs)) + ops.sum(ops.cos(2 * final))

    return loss


@pytest.mark.parametrize("length", [CHUNK - 3, 3 * CHUNK + 5])
@both_ways
def test_gradients_are_those_of_the_loop(length, reverse):
    for mask in masks(length)[1:]:
        actual, expected = (
            gradients_of(loss_of(function, mask, reverse), tensors(length))
            for function in (linear_recurrence, one_step_after_the_other)
        )
        close(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.skipif(BACKEND == "torch", reason="plain autodiff there, whose second one is torch's")
def test_second_derivatives_are_those_of_the_loop():
    length, mask = CHUNK + 2, np.ones((B, CHUNK + 2), bool)
    actual, expected = (
        gradients_of(
            functools.partial(squared_slopes, loss_of(function, mask, False)), tensors(length)
        )
        for function in (linear_recurrence, one_step_after_the_other)
    )
    close(actual, expected, rtol=10 * TOLERANCE, atol=10 * TOLERANCE)


@needs_tensorflow
@both_ways
def test_lengths_that_no_graph_knows_share_one_trace(reverse):
    import tensorflow as tf

    open_sequence = tf.TensorSpec((None, None, U), DTYPE)
    traces = []

    @tf.function(input_signature=[open_sequence] * 2 + [tf.TensorSpec((None, U), DTYPE)])
    def graph(a, b, initial_state):
        traces.append(1)
        with tf.GradientTape() as tape:
            tape.watch([a, b, initial_state])
            outputs, final = linear_recurrence(a, b, None, initial_state, reverse=reverse)
            loss = tf.reduce_sum(tf.sin(outputs)) + tf.reduce_sum(tf.cos(2 * final))
        return outputs, tape.gradient(loss, [a, b, initial_state])

    for length in LENGTHS:
        values = tensors(length)
        outputs, actual = graph(*values)
        mask = np.ones((B, length), bool)
        close(outputs, references.linear_recurrence(*values[:2], None, values[2], reverse)[0])
        expected = gradients_of(loss_of(linear_recurrence, mask, reverse), values)
        close(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)
    assert len(traces) == 1


def test_factors_of_zero_and_one_and_products_that_vanish_stay_exact():
    length = 5 * CHUNK
    a = np.zeros((1, length, 3), "float32")
    a[..., 1] = 1
    a[..., 2] = 1e-30
    b = np.ones((1, length, 3), "float32")
    tensors = map(ops.convert_to_tensor, (a, b))
    outputs, _ = numbers(linear_recurrence(*tensors, None, ops.ones((1, 3))))
    expected = np.stack([np.ones(length), 2 + np.arange(length), np.ones(length)], axis=-1)
    np.testing.assert_array_equal(outputs[0], expected)
