"""Graphs of functions with a gradient of their own: they go, and till then are differentiated."""

import gc
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import recurrent
from tests.arrays import floats

pytestmark = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of TensorFlow")
LAYERS = {
    "LSTM": lambda: recurrent.LSTM(3, return_sequences=True),
    "QRNN": lambda: recurrent.QRNN(3, return_sequences=True),
}


def traced(layer):
    import tensorflow as tf

    shape = tf.TensorSpec((None, None, 4))
    return tf.function(layer, input_signature=[shape]).get_concrete_function()


def gradient(function, x):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(function(x) ** 2)
    return tape.gradient(loss, x)


@pytest.mark.parametrize("name", LAYERS)
def test_a_graph_goes_with_its_function(name):
    from tensorflow.python.framework.ops import gradient_registry

    layer, x = LAYERS[name](), ops.convert_to_tensor(floats(2, 9, 4))
    expected = gradient(layer, x)
    before = {*gradient_registry.list()}
    function = traced(layer)
    assert {*gradient_registry.list()} > before
    gc.collect()
    np.testing.assert_allclose(gradient(function, x), expected, rtol=1e-5, atol=1e-6)
    graph = weakref.ref(function.graph)
    del function
    gc.collect()
    assert graph() is None and {*gradient_registry.list()} == before


def test_a_saved_function_is_differentiated_once_its_graph_has_gone(tmp_path):
    import tensorflow as tf

    layer, x = LAYERS["LSTM"](), ops.convert_to_tensor(floats(2, 9, 4))
    expected, module = gradient(layer, x), tf.Module()
    module.variables_of_layer, module.call = layer.variables, traced(layer)
    tf.saved_model.save(module, tmp_path / "saved")
    del module
    gc.collect()
    loaded = tf.saved_model.load(tmp_path / "saved")
    np.testing.assert_allclose(gradient(loaded.call, x), expected, rtol=1e-5, atol=1e-6)
