import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import SimpleRNN, bptt
from tests.arrays import BACKEND, close, floats, numbers, right_padded
from tests.autodiff import gradients_of
from tests.conftest import others_long
from tests.references.bptt import bptt_gradients, bptt_loss

B, T, D, UNITS, K = 2, 7, 3, 5, 11
TARGETS = np.random.default_rng(1).integers(K, size=(B, T))
ALL = np.ones((B, T), bool)
MASKS = {
    "holes and an empty row": np.array([[1, 0, 1, 1, 0, 0, 1], [0] * 7], bool),
    "no mask": None,
    "right-padded": right_padded([7, 4], T),
}
WEIGHTS = {
    "the last step": bptt.last_step,
    "every step": bptt.every_step,
    "any weights": lambda mask: floats(B, T, seed=8),
}
# Keras's tanh computes in float32 on JAX, whatever it is given.
DTYPE, RTOL = ("float32", 1e-4) if BACKEND == "jax" else ("float64", 1e-12)
every_mask = pytest.mark.parametrize("mask", others_long(MASKS.values()), ids=MASKS)
every_weighting = pytest.mark.parametrize("weighting", WEIGHTS.values(), ids=WEIGHTS)


def values():
    """U, V, W, b, c, inputs, initial_state."""
    shapes = [(UNITS, D), (K, UNITS), (UNITS, UNITS), (UNITS,), (K,), (B, T, D), (B, UNITS)]
    return [floats(*shape, seed=5).astype(DTYPE) for shape in shapes]


def flat(gradients):
    return [*gradients.parameters, gradients.inputs, gradients.initial_state]


def same(actual, expected):
    """Equal to RTOL of the largest value."""
    for each, other in zip(numbers(actual), numbers(expected), strict=True):
        assert each.dtype == DTYPE
        np.testing.assert_allclose(each, other, rtol=0, atol=RTOL * np.max(np.abs(other)))


def by_hand(values, weights, mask, **options):
    parameters, (inputs, initial_state) = bptt.Parameters(*values[:5]), values[5:]
    activations = bptt.forward(parameters, inputs, initial_state, mask)
    return flat(bptt.backward(parameters, inputs, activations, TARGETS, weights, mask, **options))


def loss_of(values, weights, mask):
    activations = bptt.forward(bptt.Parameters(*values[:5]), *values[5:], mask)
    return bptt.loss(activations.o, TARGETS, weights)


@every_mask
@every_weighting
def test_the_gradients_are_those_of_autodiff(mask, weighting):
    weights = numbers(weighting(ALL if mask is None else mask))
    expected = gradients_of(lambda values: loss_of(values, weights, mask), values())
    same(by_hand(values(), weights, mask), expected)


@every_mask
def test_the_loss_and_its_gradients_are_those_of_loops(mask):
    real, weights = ALL if mask is None else mask, floats(B, T, seed=8).astype(DTYPE)
    expected = bptt_loss(*values(), TARGETS, weights, real)
    same([loss_of(values(), weights, mask)], [expected])
    same(by_hand(values(), weights, mask), bptt_gradients(values(), TARGETS, weights, real))


@every_mask
def test_the_network_is_simple_rnn_and_dense(mask):
    inputs, initial_state = (each.astype("float32") for each in values()[5:])
    weights = numbers(bptt.every_step(ALL if mask is None else mask))
    rnn, dense = SimpleRNN(UNITS, return_sequences=True), keras.layers.Dense(K)
    rnn.build(inputs.shape)
    dense.build((B, T, UNITS))
    U, V, W, b, c = (each.astype("float32") for each in values()[:5])
    rnn.set_weights([U.T, W.T, b])
    dense.set_weights([V.T, c])

    def loss(values):
        variables = [*rnn.trainable_variables, *dense.trainable_variables]
        pairs = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=pairs):
            logits = dense(rnn(inputs, mask=mask, initial_state=[initial_state]))
        losses = keras.losses.sparse_categorical_crossentropy(TARGETS, logits, from_logits=True)
        return ops.sum(ops.multiply(losses, weights))

    parameters = bptt.Parameters(U, V, W, b, c)
    activations = bptt.forward(parameters, inputs, initial_state, mask)
    actual = bptt.backward(parameters, inputs, activations, TARGETS, weights, mask).parameters
    kernel, recurrent_kernel, bias, dense_kernel, dense_bias = gradients_of(
        loss, [*rnn.get_weights(), *dense.get_weights()]
    )
    expected = bptt.Parameters(kernel.T, dense_kernel.T, recurrent_kernel.T, bias, dense_bias)
    largest = max(np.max(np.abs(each)) for each in expected)
    close(list(actual), list(expected), rtol=0, atol=1e-5 * largest)
    close(bptt.loss(activations.o, TARGETS, weights), loss(rnn.get_weights() + dense.get_weights()))


@pytest.mark.parametrize("chunk_length", others_long([3, 11, 1, 2, 7], 2))
@every_mask
def test_truncation_stops_the_gradient_before_each_chunk(chunk_length, mask):
    weights = floats(B, T, seed=8)

    def loss(values):
        parameters, (inputs, state) = bptt.Parameters(*values[:5]), values[5:]
        total = 0
        for start in range(0, T, chunk_length):
            chunk = slice(start, start + chunk_length)
            part = None if mask is None else mask[:, chunk]
            h, o = bptt.forward(parameters, inputs[:, chunk], state, part)
            total = total + bptt.loss(o, TARGETS[:, chunk], weights[:, chunk])
            state = ops.stop_gradient(h[:, -1])
        return total

    actual = by_hand(values(), weights, mask, chunk_length=chunk_length)
    same(actual, gradients_of(loss, values()))
    whole = by_hand(values(), weights, mask)
    assert np.allclose(numbers(actual[2]), numbers(whole[2])) == (chunk_length >= T)


def test_the_weights_count_real_steps_and_the_last_of_them():
    mask = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    np.testing.assert_array_equal(numbers(bptt.every_step(mask)), mask)
    expected = [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(numbers(bptt.last_step(mask)), expected)


def test_descent_with_gradients_by_hand_learns_a_sequence():
    U, V, W, b, c, inputs, state = (0.5 * each.astype("float32") for each in values())
    parameters, weights = bptt.Parameters(U, V, W, b, c), numbers(bptt.every_step(ALL))
    for _ in range(100):
        activations = bptt.forward(parameters, inputs, state)
        gradients = bptt.backward(parameters, inputs, activations, TARGETS, weights)
        steps = zip(parameters, gradients.parameters, strict=True)
        parameters = bptt.Parameters(*(each - 0.05 * numbers(step) for each, step in steps))
    np.testing.assert_array_equal(np.argmax(numbers(activations.o), axis=-1), TARGETS)


def test_shapes_that_do_not_fit_are_refused_all_at_once():
    U, V, W, b, c, inputs, state = values()
    message = (
        r"^forward: U must have shape \(5, 3\); received \(3, 5\); "
        r"mask must have shape \(2, 7\); received \(7, 2\)\.$"
    )
    with pytest.raises(ValueError, match=message):
        bptt.forward(bptt.Parameters(U.T, V, W, b, c), inputs, state, ALL.T)
    parameters = bptt.Parameters(U, V, W, b, c)
    activations = bptt.forward(parameters, inputs, state)
    with pytest.raises(ValueError, match=r"^backward: targets must .* received \(2, 5\)\.$"):
        bptt.backward(parameters, inputs, activations, TARGETS[:, :5], floats(B, T))
    with pytest.raises(ValueError, match=r"^backward: chunk_length must be positive; received 0\."):
        bptt.backward(parameters, inputs, activations, TARGETS, floats(B, T), chunk_length=0)
    message = r"^forward: inputs must have shape \(batch, length, dim\) with a known length; rec"
    with pytest.raises(ValueError, match=message):
        bptt.forward(parameters, inputs[0], state)
