"""Dilated convolutions of Keras: one node, and Keras's numbers at every length."""

import pytest
import tensorflow as tf
from keras import layers

from seqkeras.export.onnx_graphs import convert
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import close, floats, randomize
from tests.export.running import run

X = TensorSpec("x", "float32", ("batch", "length", 8))
LAYERS = [
    *(layers.Conv1D(6, 4, dilation_rate=3, padding=each) for each in ("same", "valid", "causal")),
    layers.SeparableConv1D(6, 3, dilation_rate=2, padding="same"),
    layers.SeparableConv1D(6, 3, dilation_rate=2, padding="valid"),
    layers.DepthwiseConv1D(3, depth_multiplier=2, dilation_rate=2, padding="same"),
    layers.DepthwiseConv1D(3, dilation_rate=5, padding="valid"),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda each: f"{type(each).__name__}, {each.padding}")
def test_a_dilated_convolution_is_one_node(layer):
    layer.build((None, None, 8))
    randomize(layer)
    width = layer.compute_output_shape((1, 19, 8))[-1]
    outputs = [TensorSpec("y", "float32", ("batch", "length_out", width))]
    graph = convert(lambda x: {"y": layer(x)}, [X], outputs, name="toy")
    counts = graph.node_counts()
    assert counts["Conv"] == (2 if isinstance(layer, layers.SeparableConv1D) else 1)
    assert not {"Reshape", "SpaceToDepth", "DepthToSpace", "Shape"} & {*counts}
    for length in (11, 12, 13, 17):
        x = floats(2, length, 8)
        close(run(graph, {"x": x})["y"], layer(x), rtol=1e-4, atol=1e-5)


def test_in_two_dimensions_each_has_its_own_dilation():
    layer = layers.Conv2D(5, 3, padding="same", dilation_rate=(2, 3))
    layer.build((None, None, None, 7))
    randomize(layer)
    specs = [
        TensorSpec(name, "float32", ("batch", "height", "width", channels))
        for name, channels in (("x", 7), ("y", 5))
    ]
    graph = convert(lambda x: {"y": layer(x)}, specs[:1], specs[1:], name="toy")
    assert graph.node_counts()["Conv"] == 1
    x = floats(2, 11, 13, 7)
    close(run(graph, {"x": x})["y"], layer(x), rtol=1e-4, atol=1e-5)


def test_paddings_that_are_made_of_the_length_stay_computed():
    kernel = floats(3, 8, 5)

    def function(x):
        paddings = [[2, 2 - tf.shape(x)[1] % 2]]
        apart = tf.space_to_batch(x, [2], paddings)
        return {"y": tf.batch_to_space(tf.nn.conv1d(apart, kernel, 1, "VALID"), [2], [[0, 0]])}

    outputs = [TensorSpec("y", "float32", ("batch", "length_out", 5))]
    graph = convert(function, [X], outputs, name="toy")
    for length in (7, 8):
        x = floats(2, length, 8)
        close(run(graph, {"x": x})["y"], function(x)["y"], rtol=1e-4, atol=1e-5)
