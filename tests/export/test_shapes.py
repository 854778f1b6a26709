"""Sizes that a model takes are found, whatever it makes of short sequences."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from seqkeras.export.families import plan_export
from seqkeras.export.families.calling import build
from seqkeras.export.families.shapes import infer_outputs
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import floats

X = TensorSpec("x", "float32", ("batch", "length", 3))


@pytest.mark.parametrize("kernel, dilation", [(4, 1), (5, 1), (3, 2), (9, 8)])
def test_a_convolution_is_called_with_as_many_steps_as_it_takes(kernel, dilation):
    convolution = layers.Conv1D(5, kernel, dilation_rate=dilation)
    model = keras.Sequential([keras.Input((None, 3), name="x"), convolution])
    [output] = plan_export(model).graphs["model"].outputs
    assert output.shape == ("batch", "output_axis_1", 5)


@keras.saving.register_keras_serializable("tests")
class Windows(keras.Model):
    """A subclass, of which Keras knows no shape: it has to be called."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(23, 3)
        self.convolution = layers.Conv1D(5, 7)

    def call(self, token_ids):
        return ops.max(self.convolution(self.embedding(token_ids)), axis=1)


def test_a_subclass_is_built_by_a_call_that_is_long_enough():
    model, inputs = Windows(), [TensorSpec("token_ids", "int64", ("batch", "length"))]
    build(model, inputs)
    assert np.shape(model.convolution.kernel) == (7, 3, 5)
    outputs = plan_export(model, inputs).graphs["model"].outputs
    assert outputs == [TensorSpec("output", "float32", ("batch", 5))]


@pytest.mark.parametrize(
    "layer",
    [
        layers.MaxPooling1D(2, padding="same"),
        layers.Conv1D(5, 3, strides=2, padding="same"),
        layers.ZeroPadding1D(1),
        layers.UpSampling1D(2),
        layers.Cropping1D(1),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_length_made_of_another_gets_a_name_of_its_own(layer):
    other = TensorSpec("other", "float32", ("batch", "other_length", 3))
    inputs = [X, other]
    [first, second] = infer_outputs(lambda x, other: {"x": layer(x), "y": layer(other)}, inputs)
    assert first.shape[:2] == ("batch", "x_axis_1") and second.shape[:2] == ("batch", "y_axis_1")


def test_a_model_that_takes_no_long_sequence_is_called_with_short_ones():
    table = floats(5, 3)
    [output] = infer_outputs(lambda x: {"y": x + table[None, : x.shape[1]]}, [X])
    assert output.shape == ("batch", "length", 3)


def test_what_no_length_helps_is_refused_with_what_the_shortest_gave():
    model = keras.Sequential([keras.Input((None, 3), name="x"), layers.Conv1D(5, 600)])
    with pytest.raises(ValueError, match="subtracting 600 from 3.*; name its inputs"):
        plan_export(model)


@pytest.mark.parametrize("layer", [layers.Conv1D(5, 4), layers.LSTM(7), layers.Cropping1D(1)])
def test_a_call_with_ones_gives_the_sizes_of_a_trace(layer):
    def function(x):
        return {"x": layer(x), "y": x[:, :2]}

    assert infer_outputs(function, [X], of_ones=True) == infer_outputs(function, [X])


def test_a_function_that_refuses_ones_is_traced():
    def function(x):
        if hasattr(x, "numpy"):
            raise ValueError("values: not these.")
        return {"y": 2 * x}

    [output] = infer_outputs(function, [X], of_ones=True)
    assert output.shape == ("batch", "length", 3)


def test_no_size_is_taken_from_the_values_of_a_layer_of_the_user():
    x = keras.Input((None, 3), name="x")
    some = layers.Lambda(lambda x: x[:, : ops.cast(ops.sum(x[0, 0]), "int32")], (None, 3))(x)
    [output] = plan_export(keras.Model(x, some)).graphs["model"].outputs
    assert output.shape == ("batch", "output_axis_1", 3)
