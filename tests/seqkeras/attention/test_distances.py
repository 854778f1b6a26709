"""Attention that knows how far keys are: vectors of clipped distances, and T5's buckets."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.attention import DistanceBias, MultiHeadAttention, RestrictedSelfAttention
from tests import references
from tests.arrays import close, floats, numbers, randomize
from tests.complex_step import assert_is_the_formula
from tests.refusals import refusals

WINDOW, T = 3, 11
BUCKETS = {"near": (6, 5), "far": (8, 20)}  # of each: how many, and up to which distance
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
every_clip = pytest.mark.parametrize("clip", [None, 2, 17])


def seen(causal, window=T):
    t, s = np.arange(T)[:, None], np.arange(T)
    return np.repeat(((s <= (t if causal else t + window)) & (s >= t - window))[None], 2, axis=0)


class Biased(keras.layers.Layer):
    """Self-attention of 3 heads under a `DistanceBias`, whose table is the last weight."""

    def __init__(self, buckets, causal, clip, window=None):
        super().__init__()
        options = {"causal": causal, "relative_clip": clip}
        if window is None:
            self.attention, self.num_inputs = MultiHeadAttention(3, 2, **options), 3
        else:
            self.attention = RestrictedSelfAttention(3, 2, window, **options)
            self.num_inputs = 1
        self.bias = DistanceBias(3, *buckets, bidirectional=not causal)

    def build(self, sequence_shape, real_shape=None):
        self.attention.build(*[sequence_shape] * self.num_inputs)
        self.bias.build()

    def call(self, sequence, real=None):
        options = {} if real is None else {"mask": real}
        inputs = [sequence] * self.num_inputs
        return self.attention(*inputs, **options, distance_bias=self.bias)


def reference_of(buckets, causal, window=T):
    distances = range(-buckets[1], buckets[1] + 1)
    rows = [references.t5_bucket(distance, not causal, *buckets) for distance in distances]

    def reference(weights, sequence, real=None):
        allowed = seen(causal, window)
        if real is not None:
            allowed, sequence = allowed & real[:, None], sequence * real[..., None]
        *weights, table = weights
        return references.distance_attention(sequence, allowed, weights, table[rows])

    return reference


@causal_or_not
@every_clip
@pytest.mark.parametrize("buckets", BUCKETS.values(), ids=BUCKETS)
def test_attention_with_distances_and_its_gradients_are_the_papers_formula(clip, causal, buckets):
    assert_is_the_formula(
        lambda: Biased(buckets, causal, clip),
        {"sequence": floats(2, T, 7)},
        reference_of(buckets, causal),
    )


@causal_or_not
@pytest.mark.parametrize("clip", [None, 2])
def test_restricted_attention_knows_distances_too(clip, causal):
    real = np.random.default_rng(7).random((2, T)) < 0.7
    assert_is_the_formula(
        lambda: Biased((6, 5), causal, clip, WINDOW),
        {"sequence": floats(2, T, 7), "real": real},
        reference_of((6, 5), causal, WINDOW),
    )


@causal_or_not
def test_weights_of_a_plot_are_the_weights_of_the_call(causal):
    x, table = floats(2, T, 7), DistanceBias(3, 6, 5)
    table.build()
    randomize(table)
    layer = randomize(built(RestrictedSelfAttention(3, 2, WINDOW, relative_clip=2), x))
    weights = layer.attention_weights(x, causal=causal, distance_bias=table)
    whole = MultiHeadAttention(3, 2, relative_clip=2)
    built(whole, x, x, x)
    whole.set_weights(layer.get_weights())
    close(
        whole.attention_weights(x, x, seen(causal, WINDOW), distance_bias=table),
        weights,
    )
    mask = seen(causal, WINDOW)
    close(
        layer(x, causal=causal, distance_bias=table),
        whole(x, x, x, attention_mask=mask, distance_bias=table),
    )


def built(layer, *inputs):
    layer(*inputs)
    return layer


def test_dropout_of_weights_leaves_out_the_vectors_of_their_distances():
    x = np.zeros((1, T, 7), "float32")  # so that contexts are a_V alone
    layer = built(MultiHeadAttention(1, 2, relative_clip=2, dropout=0.999, seed=3), x, x, x)
    assert np.any(numbers(layer(x, x, x)))
    assert not np.any(numbers(layer(x, x, x, training=True)))


SIZES = [(32, 128), (32, 64), (16, 37), (8, 20), (31, 101), (4, 3)]


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_buckets, max_distance", SIZES)
def test_buckets_are_the_papers(num_buckets, max_distance, bidirectional):
    layer = DistanceBias(1, num_buckets, max_distance, bidirectional)
    layer.build()
    layer.set_weights([np.arange(num_buckets, dtype="float32")[:, None]])
    distances = np.arange(-2 * max_distance, 2 * max_distance + 1)
    expected = [
        references.t5_bucket(distance, bidirectional, num_buckets, max_distance)
        for distance in distances.tolist()
    ]
    np.testing.assert_array_equal(numbers(layer(-distances))[:, 0], expected)
    hub = pytest.importorskip("keras_hub.src.models.t5.t5_multi_head_attention")
    theirs = hub.T5MultiHeadAttention._relative_position_bucket(
        ops.convert_to_tensor(distances, "int32"), bidirectional, num_buckets, max_distance
    )
    np.testing.assert_array_equal(numbers(theirs), expected)


# First distances of the buckets, as `T5Attention._relative_position_bucket` of transformers 5.23.0
# puts 0 to 300 steps before a query into 32.
STARTS = {
    True: [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91],
    False: [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113],
}


@pytest.mark.parametrize("bidirectional, starts", STARTS.items())
def test_buckets_are_those_of_transformers(bidirectional, starts):
    layer = DistanceBias(1, bidirectional=bidirectional)
    layer.build()
    layer.set_weights([np.arange(32, dtype="float32")[:, None]])
    buckets = numbers(layer(np.arange(301)))[:, 0].astype(int)
    assert buckets.tolist() == [np.searchsorted(starts, d, "right") - 1 for d in range(301)]


POSITIVE = "must be a positive integer"
test_what_makes_no_distances_is_refused = refusals(
    (lambda: DistanceBias(3, 2), "DistanceBias: num_buckets must be at least 4, and max_distance"),
    (lambda: DistanceBias(3, 32, 8), "max_distance more than half the buckets of a side; received"),
    (lambda: MultiHeadAttention(3, 2, relative_clip=0), f"relative_clip {POSITIVE}; received 0"),
)
