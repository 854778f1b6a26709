import keras
import numpy as np
import pytest
from keras import tree

from seqkeras.recurrent import LSTM
from tests.arrays import close, needs_tensorflow
from tests.catalogue import CASES, call, options_long


def open_axes(inputs, lengths):
    """TensorFlow specs of the inputs, open in the batch and in the axes that may be padded."""
    import tensorflow as tf

    def spec(name, array):
        axes = {0, lengths.get(name)}
        shape = [None if axis in axes else size for axis, size in enumerate(array.shape)]
        return tf.TensorSpec(shape, array.dtype, name=name)

    return {
        name: tree.map_structure(lambda each, name=name: spec(name, each), value)
        for name, value in inputs.items()
    }


@pytest.mark.long
@needs_tensorflow
@options_long([case for case in CASES if case.lengths])
def test_one_graph_takes_lengths_and_batches_of_any_size(case):
    import tensorflow as tf

    layer, inputs = case.built(), case.inputs()

    @tf.function(input_signature=[open_axes(inputs, case.lengths)], autograph=False)
    def graph(inputs):
        return call(layer, inputs)

    for steps in (0, 1, 3):
        longer = case.padded(inputs, steps)
        close(graph(tree.map_structure(tf.constant, longer)), call(layer, longer), atol=1e-5)
        one = tree.map_structure(lambda each: each[:1], longer)
        close(graph(tree.map_structure(tf.constant, one)), call(layer, one), atol=1e-5)


@needs_tensorflow
def test_fit_on_batches_of_many_lengths_traces_three_times_at_most():
    traces = []

    class Counted(keras.Sequential):
        def call(self, *args, **kwargs):
            traces.append(1)
            return super().call(*args, **kwargs)

    model = Counted([LSTM(7, return_sequences=True), keras.layers.Dense(3)])
    model.build((None, None, 5))
    model.compile("sgd", "mse", jit_compile=False)
    traces.clear()
    for length in (3, 5, 7, 11, 13):
        model.train_on_batch(np.ones((2, length, 5)), np.ones((2, length, 3)))
    assert 1 <= len(traces) <= 3  # the first length, then any: Keras relaxes the shapes
