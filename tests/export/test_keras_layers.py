"""Layers of Keras that leave as the composites they equal."""

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from keras import layers
from keras.src import backend, ops

from seqkeras.export.keras_layers import as_composites, steps_as_rows
from seqkeras.serving.opening import EXACT_INT8
from tests.arrays import close, floats
from tests.conftest import others_long
from tests.export.test_single_pass import agree, exported

X = floats(3, 5, 8)
X[1, 3:] = X[2, 1] = 0  # what Masking masks
SEEDS = keras.random.SeedGenerator(1)


def model_of(layer, given=None):
    given = keras.Input((None, 8), name="x") if given is None else given
    model = keras.Model(given, layer(given))
    for place, weight in enumerate(model.weights):
        weight.assign(1 + floats(*weight.shape, seed=place))
    return model


def counts_of(layer, given=None, x=X):
    """The nodes of a layer, behind a proof that they give its numbers."""
    graphs, signatures = exported(model_of(layer, given))
    agree(graphs, signatures, {"x": x})
    return graphs["model"].node_counts()


@pytest.mark.parametrize("cell", others_long(["LSTM", "GRU"]))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_sequences": True},
        {"go_backwards": True},
        {"go_backwards": True, "return_sequences": True},
    ],
    ids=str,
)
def test_a_recurrent_layer_without_a_mask_is_a_native_node(cell, options):
    counts = counts_of(getattr(layers, cell)(5, **options))
    assert counts[cell] == 1 and "Loop" not in counts


@pytest.mark.long
@pytest.mark.parametrize("cell, node", [("LSTM", "LSTM"), ("GRU", "GRU"), ("SimpleRNN", "Loop")])
def test_dropout_of_a_recurrent_layer_leaves_nothing(cell, node):
    layer = getattr(layers, cell)
    counts = counts_of(layer(5, dropout=0.3))
    assert counts == counts_of(layer(5)) and counts[node] == 1
    assert counts_of(layer(5, recurrent_dropout=0.3))["Loop"] == 1


@pytest.mark.long
@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_dropout_in_both_directions_leaves_behind_a_mask(cell):
    inner = getattr(layers, cell)(5, dropout=0.2, recurrent_dropout=0.3, seed=1)
    counts_of(lambda x: layers.Bidirectional(inner)(layers.Masking()(x)))


def test_what_is_drawn_at_each_call_is_refused():
    layer = layers.Lambda(lambda x: x + keras.random.normal((8,), seed=SEEDS))
    with pytest.raises(ValueError, match="not every part has an ONNX operator"):
        exported(model_of(layer))


def test_in_half_precision_they_are_keras_own():
    given = keras.Input((None, 8), dtype="float16", name="x")
    counts_of(layers.LayerNormalization(dtype="float16"), given, X.astype(np.float16))


def test_outside_of_the_context_keras_is_as_it_was():
    def found():
        return ops.layer_normalization, ops.gelu, backend.gru, keras.random.SeedGenerator.next

    before = found()
    with pytest.raises(ZeroDivisionError), as_composites():
        assert not set(found()) & set(before)
        raise ZeroDivisionError
    assert found() == before


def test_more_steps_than_rows_are_right_in_a_function_of_open_sizes():
    model = model_of(layers.TimeDistributed(layers.Dense(5)))
    expected = model(X)
    with steps_as_rows():
        function = tf.function(model, input_signature=[tf.TensorSpec([None, None, 8])])
        close(function(X), expected, rtol=1e-5)


def test_a_recurrent_layer_over_all_steps_has_the_mask_of_each():
    given = keras.Input((None, None), dtype="int64", name="x")  # (B, T, W)
    embedding = layers.TimeDistributed(layers.Embedding(9, 4, mask_zero=True))
    words = np.array([[[1, 2, 3], [4, 5, 0]], [[6, 0, 0], [7, 8, 0]]])
    counts_of(lambda x: layers.TimeDistributed(layers.LSTM(3))(embedding(x)), given, words)


class Compiled(layers.Layer):
    """By a function that XLA compiles, with a weight of its own."""

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(shape[-1],))

    @tf.function(jit_compile=True)
    def scaled(self, x):
        return ops.tanh(x) * self.scale

    def call(self, x):
        return self.scaled(x)


def of_steps(layer):
    return layers.TimeDistributed(layer)


def gelu(approximate):
    return layers.Activation(lambda x: keras.activations.gelu(x, approximate))


# A layer, and all of its nodes.
WHOLE = [
    (layers.LayerNormalization(), {"LayerNormalization": 1}),
    (layers.LayerNormalization(axis=2, epsilon=0.1), {"LayerNormalization": 1}),
    (gelu(approximate=True), {"FastGelu": 1}),
    (gelu(approximate=False), {"Gelu": 1}),
    (Compiled(), {"Tanh": 1, "Mul": 1}),
]
# A layer, and some nodes, of which others have none.
SOME = [
    (layers.LayerNormalization(center=False), {"LayerNormalization": 0}),
    (layers.Bidirectional(layers.GRU(5, return_sequences=True)), {"GRU": 2, "Loop": 0}),
    (layers.GRU(5, activation="relu"), {"Loop": 1}),
    (layers.GRU(5, use_bias=False), {"Loop": 1}),
    (layers.GRU(5, reset_after=False), {"Loop": 1}),
    (of_steps(layers.Dense(5)), {"MatMul": 1}),
    (of_steps(layers.LayerNormalization()), {"LayerNormalization": 1}),
    (layers.Conv1D(4, 3, groups=2, padding="causal", dilation_rate=2), {"Conv": 1}),
    (layers.Conv1D(4, 3, groups=2), {"Conv": 1}),
    (layers.Conv1D(4, 3, groups=4, strides=2, padding="same"), {"Conv": 1}),
]


@pytest.mark.parametrize("layer, expected", WHOLE)
def test_a_layer_is_these_nodes(layer, expected):
    assert counts_of(layer) == expected


@pytest.mark.parametrize("layer, expected", SOME)
def test_a_layer_has_as_many_nodes_of_a_kind(layer, expected):
    counts = counts_of(layer)
    assert {name: counts.get(name, 0) for name in expected} == expected


def test_normalization_over_other_axes_leaves_op_by_op():
    counts = counts_of(layers.LayerNormalization(axis=[1, 2]), keras.Input((5, 8), name="x"))
    assert "LayerNormalization" not in counts


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")  # of Keras's
def test_products_of_keras_own_int8_share_no_zero_point():
    model = model_of(lambda x: layers.Dense(5)(layers.Dense(6, activation="relu")(x)))
    model.quantize("int8")
    graphs, signatures = exported(model)
    agree(graphs, signatures, {"x": X})
    assert graphs["model"].node_counts()["MatMulInteger"] == 2
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(EXACT_INT8, "1")  # of processors without VNNI
    content, providers = graphs["model"].whole().SerializeToString(), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(content, options, providers)
    close(session.run(None, {"x": X})[0], model(X), rtol=1e-4, atol=1e-4)


def to_itself(layer, **options):
    return lambda x: layer([x, x], **options)


OF_SEQUENCES = {
    "causal heads": lambda: lambda x: layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True),
    "stack of cells": lambda: layers.RNN([layers.LSTMCell(4), layers.GRUCell(3)]),
    "rms norm": layers.RMSNormalization,
    "depthwise": lambda: layers.DepthwiseConv1D(3, depth_multiplier=2, padding="same"),
    "transposed": lambda: layers.Conv1DTranspose(6, 3, strides=2, padding="same"),
    "batch norm": layers.BatchNormalization,
    "group norm": lambda: layers.GroupNormalization(4),
    "unit norm": layers.UnitNormalization,
    "spatial dropout": lambda: layers.SpatialDropout1D(0.3),
    "simple": lambda: layers.SimpleRNN(5, go_backwards=True),
    "global pooling": layers.GlobalAveragePooling1D,
    "attention": lambda: to_itself(layers.Attention(use_scale=True)),
    "causal attention": lambda: to_itself(layers.Attention(), use_causal_mask=True),
    "additive attention": lambda: to_itself(layers.AdditiveAttention()),
    "grouped queries": lambda: lambda x: layers.GroupQueryAttention(4, 4, 2)(x, x),
    "einsum": lambda: layers.EinsumDense("bth,hk->btk", (None, 6), bias_axes="k"),
    "images of steps": lambda: (
        lambda x: layers.ConvLSTM1D(3, 3, return_sequences=True)(layers.Reshape((-1, 4, 2))(x))
    ),
    "celu": lambda: layers.Activation("celu"),
    "glu": lambda: layers.Activation("glu"),
    "sparsemax": lambda: layers.Activation("sparsemax"),
    "upsampling": lambda: layers.UpSampling1D(2),
    "pooling": lambda: layers.MaxPooling1D(2, padding="same"),
}


@pytest.mark.filterwarnings("ignore:(?s).*destroy the mask:UserWarning")
@pytest.mark.parametrize("masked", others_long([True, False]), ids=["masked", "whole"])
@pytest.mark.parametrize("name", others_long(OF_SEQUENCES, 3))
def test_layers_of_sequences_have_the_numbers_of_keras(name, masked):
    layer = OF_SEQUENCES[name]()
    counts_of((lambda x: layer(layers.Masking()(x))) if masked else layer)
