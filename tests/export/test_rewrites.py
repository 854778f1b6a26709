"""Rewrites on functions and dilated convolutions: the nodes that are left, the same numbers."""

import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

from seqkeras.serving.manifest import TensorSpec
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats, randomize
from tests.export.running import converted, require_agreement, run

ROWS = TensorSpec("x", "float32", ("batch", "length", 6))
ALLOWED = np.array([False, True, True, False, True])
KERNEL, BIAS = floats(6, 5), floats(5, seed=1)
X = floats(2, 3, 6, seed=2)


@pytest.mark.parametrize(
    "other, bias, counts",
    [
        (BANNED_LOGIT, BIAS, {"MatMul": 1, "Add": 1}),
        (BANNED_LOGIT, None, {"MatMul": 1, "Add": 1}),
        (-1.0, BIAS, {"MatMul": 1, "Add": 1, "Where": 1}),  # a small number is no bias
    ],
)
def test_logits_of_what_may_never_be_chosen_cost_a_bias(other, bias, counts):
    def logits(x):
        products = ops.matmul(x, KERNEL)
        return {"y": ops.where(ALLOWED, products if bias is None else products + bias, other)}

    graph = converted(logits, ROWS)
    assert graph.node_counts() == counts
    expected = X @ KERNEL + (0 if bias is None else bias)
    close(run(graph, {"x": X})["y"], np.where(ALLOWED, expected, other))


def test_reshapes_to_equal_sizes_compute_them_once():
    def function(x):
        halves = []
        for part in (ops.tanh(x), ops.exp(x)):
            batch, length = ops.shape(part)[:2]  # of each part anew
            rows = ops.reshape(part, (batch * length, 6))
            halves.append(ops.reshape(ops.square(rows), (batch, length, 2, 3)))
        return {"y": ops.sum(halves[0] * halves[1], axis=-1)}

    graph = converted(function, ROWS)
    counts = graph.node_counts()
    assert (counts["Reshape"], counts["Concat"], counts["Shape"]) == (4, 1, 1)
    expected = (np.tanh(X) ** 2 * np.exp(X) ** 2).reshape(2, 3, 2, 3).sum(axis=-1)
    close(run(graph, {"x": X})["y"], expected)


SEQUENCES = TensorSpec("x", "float32", ("batch", "length", 8))
IMAGES = TensorSpec("x", "float32", ("batch", "height", "width", 8))
DILATED = [
    *(layers.Conv1D(6, 4, dilation_rate=3, padding=each) for each in ("same", "valid", "causal")),
    layers.SeparableConv1D(6, 3, dilation_rate=2, padding="same"),
    layers.SeparableConv1D(6, 3, dilation_rate=2, padding="valid"),
    layers.DepthwiseConv1D(3, depth_multiplier=2, dilation_rate=2, padding="same"),
    layers.DepthwiseConv1D(3, dilation_rate=5, padding="valid"),
    layers.Conv2D(5, 3, padding="same", dilation_rate=(2, 3)),
]


@pytest.mark.parametrize(
    "layer", DILATED, ids=lambda each: f"{type(each).__name__}, {each.padding}"
)
def test_a_dilated_convolution_is_one_node(layer):
    of_images = isinstance(layer, layers.Conv2D)
    layer.build((None, None, None, 8) if of_images else (None, None, 8))
    randomize(layer)

    def function(x):
        return {"y": layer(x)}

    graph = converted(function, IMAGES if of_images else SEQUENCES)
    counts = graph.node_counts()
    assert counts["Conv"] == (2 if isinstance(layer, layers.SeparableConv1D) else 1)
    assert not {"Reshape", "SpaceToDepth", "DepthToSpace", "Shape"} & {*counts}
    for length in (11, 12, 13, 17):
        sizes = (11, length) if of_images else (length,)
        require_agreement(graph, function, {"x": floats(2, *sizes, 8)})


def test_paddings_that_are_made_of_the_length_stay_computed():
    kernel = floats(3, 8, 5)

    def function(x):
        paddings = [[2, 2 - tf.shape(x)[1] % 2]]
        apart = tf.space_to_batch(x, [2], paddings)
        return {"y": tf.batch_to_space(tf.nn.conv1d(apart, kernel, 1, "VALID"), [2], [[0, 0]])}

    graph = converted(function, SEQUENCES)
    for length in (7, 8):
        require_agreement(graph, function, {"x": floats(2, length, 8)})
