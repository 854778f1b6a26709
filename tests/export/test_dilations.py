"""Dilated convolutions of Keras: one node, and Keras's numbers at every length."""

import pytest
import tensorflow as tf
from keras import layers

from seqkeras.serving.manifest import TensorSpec
from tests.arrays import floats, randomize
from tests.export.running import converted, require_agreement

X = TensorSpec("x", "float32", ("batch", "length", 8))
IMAGE = TensorSpec("x", "float32", ("batch", "height", "width", 8))
LAYERS = [
    *(layers.Conv1D(6, 4, dilation_rate=3, padding=each) for each in ("same", "valid", "causal")),
    layers.SeparableConv1D(6, 3, dilation_rate=2, padding="same"),
    layers.SeparableConv1D(6, 3, dilation_rate=2, padding="valid"),
    layers.DepthwiseConv1D(3, depth_multiplier=2, dilation_rate=2, padding="same"),
    layers.DepthwiseConv1D(3, dilation_rate=5, padding="valid"),
    layers.Conv2D(5, 3, padding="same", dilation_rate=(2, 3)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda each: f"{type(each).__name__}, {each.padding}")
def test_a_dilated_convolution_is_one_node(layer):
    of_images = isinstance(layer, layers.Conv2D)
    layer.build((None, None, None, 8) if of_images else (None, None, 8))
    randomize(layer)

    def function(x):
        return {"y": layer(x)}

    graph = converted(function, IMAGE if of_images else X)
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

    graph = converted(function, X)
    for length in (7, 8):
        require_agreement(graph, function, {"x": floats(2, length, 8)})
