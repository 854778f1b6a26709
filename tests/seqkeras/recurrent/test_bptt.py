import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import bptt
from tests.arrays import BACKEND, floats, numbers, right_padded
from tests.autodiff import gradients_of
from tests.conftest import others_long
from tests.references.bptt import bptt_gradients, bptt_loss
from tests.refusals import refusals

B, T, D, UNITS, K = 2, 7, 3, 5, 11
TARGETS = np.random.default_rng(1).integers(K, size=(B, T))
ALL = np.ones((B, T), bool)
MASKS = {
    "holes and an empty row": np.array([[1, 0, 1, 1, 0, 0, 1], [0] * 7], bool),
    "no mask": None,
    "right-padded": right_padded([7, 4], T),
}
# Keras's tanh computes in float32 on JAX, whatever it is given.
DTYPE, RTOL = ("float32", 1e-4) if BACKEND == "jax" else ("float64", 1e-12)
every_mask = pytest.mark.parametrize("mask", others_long(MASKS.values()), ids=MASKS)


def values():
    """W, U, V, b, c, inputs, initial_state."""
    shapes = [(UNITS, D), (UNITS, UNITS), (K, UNITS), (UNITS,), (K,), (B, T, D), (B, UNITS)]
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
def test_the_loss_and_its_gradients_are_those_of_loops(mask):
    real, weights = ALL if mask is None else mask, floats(B, T, seed=8).astype(DTYPE)
    expected = bptt_loss(*values(), TARGETS, weights, real)
    same([loss_of(values(), weights, mask)], [expected])
    same(by_hand(values(), weights, mask), bptt_gradients(values(), TARGETS, weights, real))


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
    assert np.allclose(numbers(actual[1]), numbers(whole[1])) == (chunk_length >= T)


def test_the_weights_count_real_steps_and_the_last_of_them():
    mask = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    np.testing.assert_array_equal(numbers(bptt.every_step(mask)), mask)
    expected = [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(numbers(bptt.last_step(mask)), expected)


def forward(*values, mask=None):
    return bptt.forward(bptt.Parameters(*values[:5]), *values[5:], mask)


def backward(targets=TARGETS, **options):
    *weights, inputs, _ = values()
    parameters = bptt.Parameters(*weights)
    return bptt.backward(parameters, inputs, forward(*values()), targets, floats(B, T), **options)


test_shapes_that_do_not_fit_are_refused_all_at_once = refusals(
    (
        lambda: forward(values()[0].T, *values()[1:], mask=ALL.T),
        "forward: W must have shape (5, 3); received (3, 5); mask must have shape (2, 7); rec",
    ),
    (
        lambda: forward(*values()[:5], values()[5][0], values()[6]),
        "forward: inputs must have shape (batch, length, dim) with a known length; received",
    ),
    (lambda: backward(TARGETS[:, :5]), "backward: targets must ... received (2, 5)."),
    (lambda: backward(chunk_length=0), "backward: chunk_length must be positive; received 0."),
)
