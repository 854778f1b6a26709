import numpy as np
import pytest
from keras import ops

from seqkeras.attention import (
    MultiHeadAttention,
    RestrictedSelfAttention,
    combine_masks,
    window_mask,
)
from tests import references
from tests.agreement import DOUBLE, difference, in_double
from tests.arrays import (
    BACKEND,
    close,
    floats,
    gradients,
    needs_tensorflow,
    randomize,
    right_padded,
)
from tests.autodiff import gradients_of
from tests.complex_step import assert_is_the_formula

WINDOW = 3
LENGTHS = [4] if BACKEND == "jax" else [1, 3, 4, 11]  # JAX compiles for every length
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def make(causal):
    return RestrictedSelfAttention(3, 2, window=WINDOW, output_dim=17, causal=causal)


def window_of(length, causal):
    return window_mask(length, WINDOW, 0 if causal else WINDOW)


def reference_of(causal):
    def reference(weights, sequence, mask=None):
        t, s = np.arange(sequence.shape[1])[:, None], np.arange(sequence.shape[1])
        near = (s <= (t if causal else t + WINDOW)) & (s >= t - WINDOW)
        near = np.broadcast_to(near, (len(sequence), *near.shape))
        if mask is not None:
            near, sequence = near & mask[:, None], sequence * mask[..., None]
        return references.multi_head_attention(*[sequence] * 3, near, weights)[0]

    return reference


@causal_or_not
def test_restricted_attention_is_the_papers_formula(causal):
    for mask in ({}, {"mask": right_padded([11, 2], 11)}):
        inputs = {"sequence": floats(2, 11, 7), **mask}
        assert_is_the_formula(lambda: make(causal), inputs, reference_of(causal))


@pytest.mark.parametrize("length", LENGTHS)
@causal_or_not
def test_restricted_attention_is_multi_head_attention_in_a_window(length, causal):
    mask = np.random.default_rng(length).random((2, length)) < 0.7
    with in_double():
        restricted, whole = make(causal), MultiHeadAttention(3, 2, output_dim=17)
        sequence = floats(2, length, 7).astype("float64" if DOUBLE else "float32")
        restricted(sequence)
        whole(sequence, sequence, sequence)
        whole.set_weights(randomize(restricted).get_weights())
        factors = floats(2, length, 17, seed=5).astype(sequence.dtype)

        def in_a_window(sequence):
            near = combine_masks(window_of(length, causal), mask[:, None])
            sequence = ops.multiply(sequence, mask[..., None])
            return whole(sequence, sequence, sequence, attention_mask=near)

        results = []
        for layer, function in (
            (restricted, lambda sequence: restricted(sequence, mask=mask)),
            (whole, in_a_window),
        ):

            def loss(values, function=function):
                return ops.sum(ops.multiply(factors, function(*values)))

            by_weights = gradients(layer, lambda _, loss=loss: loss([sequence]))
            results.append([function(sequence), gradients_of(loss, [sequence]), by_weights])
    for actual, expected in zip(*results, strict=True):
        assert difference(actual, expected) < (1e-12 if DOUBLE else 1e-5)


def largest_tensor(layer, length, num_inputs=1):
    """The number of elements of the largest tensor of a training step."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def step(sequence):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(*[sequence] * num_inputs) ** 2)
        return tape.gradient(loss, [each.value for each in layer.trainable_weights])

    graph = step.get_concrete_function(tf.TensorSpec((1, length, 6))).graph
    shapes = [output.shape for each in graph.get_operations() for output in each.outputs]
    return max(shape.num_elements() or 0 for shape in shapes)


@needs_tensorflow
@causal_or_not
def test_the_largest_tensor_grows_linearly_with_length(causal):
    layer = RestrictedSelfAttention(2, 3, window=4, causal=causal)
    layer(floats(1, 5, 6))
    small, large = largest_tensor(layer, 256), largest_tensor(layer, 1024)
    assert small >= 2 * 256 * (8 if causal else 12)
    assert large == 4 * small
    whole = MultiHeadAttention(2, 3)
    whole(*[floats(1, 5, 6)] * 3)
    assert largest_tensor(whole, 256, num_inputs=3) == 2 * 256**2


@pytest.mark.parametrize("lengths", [(None, None), (2, 5)], ids=["dynamic", "static"])
@needs_tensorflow
def test_a_window_beyond_the_sequence_makes_no_block_longer_than_it(lengths):
    import tensorflow as tf

    layer = RestrictedSelfAttention(2, 3, window=1000)
    sequence = floats(2, 5, 7)
    expected = layer(sequence)
    function = tf.function(layer, input_signature=[tf.TensorSpec((*lengths, 7))], autograph=False)
    close(function(sequence), expected)
    largest = max(
        each.shape.num_elements() or 0
        for operation in function.get_concrete_function().graph.get_operations()
        for each in operation.outputs
        if each.shape.is_fully_defined()
    )
    assert largest < 1000
