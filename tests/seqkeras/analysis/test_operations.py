"""Operations counted over graphs = what formulas say."""

import keras
import pytest
from keras import ops

from seqkeras import recurrent
from seqkeras.analysis.operations import count_operations, weightless

T, D, U = 19, 5, 7

LAYERS = {  # a layer, its multiply-adds, and how many products wait for each other
    "simple_rnn": (lambda: recurrent.SimpleRNN(U), T * (D + U) * U, 1 + T),
    "lstm": (lambda: recurrent.LSTM(U), T * (D + U) * 4 * U, 1 + T),
    "gru": (lambda: recurrent.GRU(U), T * (D + U) * 3 * U, 1 + T),
    "qrnn": (lambda: recurrent.QRNN(U, window=3), T * 3 * D * 3 * U, 1),
    "keras_lstm": (lambda: keras.layers.LSTM(U), T * (D + U) * 4 * U, T),
    "both_ways": (
        lambda: recurrent.Bidirectional(recurrent.LSTM(U, return_sequences=True)),
        2 * T * (D + U) * 4 * U,
        1 + T,
    ),
    "convolution": (lambda: keras.layers.Conv1D(U, 3, padding="same"), T * 3 * D * U, 1),
    "depthwise": (lambda: keras.layers.DepthwiseConv1D(3, padding="same"), T * 3 * D, 1),
    "heads": (
        lambda: keras.layers.EinsumDense("btd,dnh->btnh", (None, 2, 3)),
        T * D * 2 * 3,
        1,
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_has_the_products_of_its_formula(name):
    make, multiply_adds, sequential = LAYERS[name]
    layer = make()
    with weightless():
        layer.build((None, None, D))
    counted = count_operations(lambda x: layer(x), x=((1, T, D), "float32"))
    assert counted.multiply_adds == multiply_adds and counted.sequential == sequential


def test_a_product_that_no_output_needs_does_not_count():
    def function(x):
        keras.ops.matmul(x, x)
        return keras.ops.matmul(x, x[:, :2])

    assert count_operations(function, x=((T, T), "float32")).multiply_adds == 2 * T * T


def test_the_longer_way_counts_where_two_meet():
    def function(x):
        three = keras.ops.matmul(keras.ops.matmul(keras.ops.matmul(x, x), x), x)
        return keras.ops.matmul(x, x) + three

    assert count_operations(function, x=((T, T), "float32")).sequential == 3


def test_a_loop_whose_turns_depend_on_the_inputs_is_named():
    def function(x, turns):
        return keras.ops.while_loop(
            lambda index, x: index < turns,
            lambda index, x: (index + 1, keras.ops.matmul(x, x)),
            (0, x),
            maximum_iterations=turns,
        )

    with pytest.raises(ValueError, match="count_operations: the turns of the loop .* depend on"):
        count_operations(function, x=((T, T), "float32"), turns=((), "int32"))


def test_weights_without_values_get_none_at_the_end_of_another_scope():
    asked = []

    def initializer(shape, dtype=None):
        asked.append(shape)
        return ops.zeros(shape, dtype)

    with weightless():
        keras.layers.Dense(3, kernel_initializer=initializer).build((None, 5))
    with keras.StatelessScope():
        keras.layers.Dense(3, kernel_initializer=initializer).build((None, 7))
    assert asked == [(7, 3)]
