import numpy as np
import pytest

from seqkeras.attention import (
    MultiHeadAttention,
    RestrictedSelfAttention,
)
from tests import references
from tests.arrays import (
    close,
    floats,
    needs_tensorflow,
)
from tests.complex_step import assert_is_the_formula

WINDOW = 3
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def make(causal):
    return RestrictedSelfAttention(3, 2, window=WINDOW, output_dim=17, causal=causal)


def reference_of(causal):
    def reference(weights, sequence, mask=None):
        t, s = np.arange(sequence.shape[1])[:, None], np.arange(sequence.shape[1])
        near = (s <= (t if causal else t + WINDOW)) & (s >= t - WINDOW)
        near = np.broadcast_to(near, (len(sequence), *near.shape))
        if mask is not None:
            near, sequence = near & mask[:, None], sequence * mask[..., None]
        return references.multi_head_attention(*[sequence] * 3, near, weights)[0]

    return reference


@pytest.mark.parametrize("length", [2, 3, 4, 11])
@causal_or_not
def test_restricted_attention_and_its_gradients_are_the_papers_formula(causal, length):
    mask = np.random.default_rng(length).random((2, length)) < 0.7
    for given in ({}, {"mask": mask}):
        inputs = {"sequence": floats(2, length, 7), **given}
        assert_is_the_formula(lambda: make(causal), inputs, reference_of(causal))


def largest_tensor(layer, length, num_inputs=1, **options):
    """The number of elements of the largest tensor of a training step."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def step(sequence):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(*[sequence] * num_inputs, **options) ** 2)
        return tape.gradient(loss, [each.value for each in layer.trainable_weights])

    return largest_of(step.get_concrete_function(tf.TensorSpec((1, length, 6))))


def largest_of(function):
    """The number of elements of the largest tensor of known size in a graph."""
    operations = function.graph.get_operations()
    shapes = [output.shape for each in operations for output in each.outputs]
    return max(shape.num_elements() or 0 for shape in shapes if shape.is_fully_defined())


@needs_tensorflow
@causal_or_not
def test_the_largest_tensor_grows_linearly_with_length(causal):
    layer = RestrictedSelfAttention(2, 3, window=4, causal=causal)
    layer(floats(1, 5, 6))
    small, large = largest_tensor(layer, 256), largest_tensor(layer, 1024)
    assert small >= 2 * 256 * (8 if causal else 12)
    assert large == 4 * small
    if causal:
        sizes = [largest_tensor(layer, n, prefix_lengths=np.array([n // 2])) for n in (256, 1024)]
        assert sizes == [2 * 256 * 12, 2 * 1024 * 12]
    whole = MultiHeadAttention(2, 3)
    whole(*[floats(1, 5, 6)] * 3)
    assert largest_tensor(whole, 256, num_inputs=3) == 2 * 256**2


@pytest.mark.parametrize("prefix", [None, np.array([100])], ids=["causal", "prefix"])
@needs_tensorflow
def test_the_largest_tensor_of_further_tokens_does_not_depend_on_the_earlier_ones(prefix):
    import tensorflow as tf

    layer = RestrictedSelfAttention(2, 3, window=4, causal=True)
    layer(floats(1, 5, 6))

    @tf.function(autograph=False)
    def read(sequence, position):
        cache = [tf.zeros((1, 2, 4, 3))] * 2
        plan = layer.plan(position, prefix, None, sequence.shape[1], 4)
        return layer.extend(sequence, cache, **plan)

    specs = [(tf.TensorSpec((1, n, 6)), tf.TensorSpec((1,), "int32")) for n in (1, 256, 1024)]
    one, small, large = (largest_of(read.get_concrete_function(*each)) for each in specs)
    assert one == 6 * 6  # a kernel
    assert small <= 2 * 256 * 12
    assert large == 4 * small


@pytest.mark.parametrize("lengths", [(None, None), (2, 5)], ids=["dynamic", "static"])
@needs_tensorflow
def test_a_window_beyond_the_sequence_makes_no_block_longer_than_it(lengths):
    import tensorflow as tf

    layer = RestrictedSelfAttention(2, 3, window=1000)
    sequence = floats(2, 5, 7)
    expected = layer(sequence)
    function = tf.function(layer, input_signature=[tf.TensorSpec((*lengths, 7))], autograph=False)
    close(function(sequence), expected)
    assert largest_of(function.get_concrete_function()) < 1000
