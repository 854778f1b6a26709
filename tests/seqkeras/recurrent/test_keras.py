"""The layers of Keras, live: ours stand in for them, weights and all."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import (
    GRU,
    QRNN,
    RNN,
    Bidirectional,
    GRUCell,
    LSTMCell,
    SimpleRNNCell,
    StackedCells,
)
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.catalogue.case import B, D, S, U
from tests.conftest import others_long
from tests.seqkeras.recurrent.rivals import (
    LAYERS,
    MASKS,
    assert_same,
    built,
    every_layer,
    every_mask,
    every_precision,
    results_and_gradients,
    states,
)


def beside(ours, theirs, shape=(None, S, D)):
    """Both built, the second with the weights of the first."""
    built(ours, shape[-1])
    theirs.build(shape)
    theirs.set_weights(ours.get_weights())
    return ours, theirs


@every_precision
@every_mask
@every_layer
def test_outputs_and_gradients_are_those_of_keras(name, mask, dtype, limit):
    layer_class, _, keras_class, num_states = LAYERS[name]
    flags = {"return_sequences": True, "return_state": True, "dtype": dtype}
    layers = beside(layer_class(U, **flags), keras_class(U, zero_output_for_mask=True, **flags))
    sequences, initial = floats(B, S, D).astype(dtype), states(num_states, dtype)
    assert_same(*(results_and_gradients(each, sequences, initial, mask) for each in layers), limit)


@pytest.mark.parametrize("return_sequences", [False, True])
@every_layer
def test_our_layers_run_in_kerass_bidirectional(name, return_sequences):
    layer_class, _, keras_class, _ = LAYERS[name]
    layers = beside(
        keras.layers.Bidirectional(layer_class(U, return_sequences=return_sequences), "sum"),
        keras.layers.Bidirectional(keras_class(U, return_sequences=return_sequences), "sum"),
    )
    given = floats(B, S, D), None, MASKS["right-padded"]
    assert_same(*(results_and_gradients(each, *given) for each in layers), 1e-5)


OTHERS = {
    "QRNN": (lambda **flags: QRNN(U, 3, "ifo", **flags), [(B, U), (B, 2, D)]),
    "RNN(StackedCells)": (
        lambda **flags: RNN([LSTMCell(U), GRUCell(13)], **flags),
        [(B, U), (B, U), (B, 13)],
    ),
    "RNN(Keras's cell)": (lambda **flags: RNN(keras.layers.LSTMCell(U), **flags), [(B, U), (B, U)]),
    "Keras's LSTM": (lambda **flags: keras.layers.LSTM(U, **flags), [(B, U), (B, U)]),
    # Keras's has no mask for the states of a stateful layer: it fails on them.
    "stateful GRU": (lambda return_state, **flags: GRU(U, stateful=True, **flags), [(B, U)]),
}


@pytest.mark.parametrize("mask", others_long(["left-padded", "right-padded", "no mask"]))
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("make, shapes", OTHERS.values(), ids=OTHERS)
def test_every_other_layer_is_turned_round_as_keras_does(make, shapes, return_sequences, mask):
    flags = {"return_sequences": return_sequences, "return_state": True}
    ours, theirs = Bidirectional(make(**flags)), keras.layers.Bidirectional(make(**flags))
    ours.build((B, S, D))
    theirs.build((B, S, D))
    theirs.set_weights(randomize(ours).get_weights())
    for layer in (ours, theirs):
        if layer.stateful:
            layer.reset_state()
    initial = [floats(*shape, seed=place) for place, shape in enumerate(2 * shapes)]
    given = {"mask": MASKS[mask], "initial_state": initial}
    close(ours(floats(B, S, D), **given), theirs(floats(B, S, D), **given))
    given["initial_state"] = None
    close(ours(floats(B, S, D), **given), theirs(floats(B, S, D), **given))


def test_a_stateful_layer_goes_on_both_ways_until_it_is_reset():
    layer = Bidirectional(QRNN(U, 2, "f", stateful=True))
    single = layer.forward_layer
    sequences = floats(B, S, D)
    first, second = (numbers(layer(sequences)) for _ in range(2))
    assert np.all(np.abs(first - second).max(axis=0) > 0)  # in both halves
    layer.reset_state()
    close(layer(sequences), first)
    single.reset_state()
    close(single(sequences), first[:, :U])


def stacks():
    """The same three cells in one stack, ours and Keras's."""
    kerass = keras.layers
    return (
        [LSTMCell(U), GRUCell(13), SimpleRNNCell(17)],
        [kerass.LSTMCell(U), kerass.GRUCell(13), kerass.SimpleRNNCell(17)],
    )


def test_stacked_cells_are_those_of_keras():
    ours, theirs = stacks()
    layers = beside(
        RNN(StackedCells(ours), return_sequences=True, return_state=True),
        keras.layers.RNN(theirs, return_sequences=True, return_state=True),
    )
    assert_same(*(results_and_gradients(each, floats(B, S, D)) for each in layers), 1e-5)


@pytest.mark.parametrize("mask", [None, MASKS["left-padded"]], ids=["no mask", "left-padded"])
@pytest.mark.parametrize("stacked", [list, keras.layers.StackedRNNCells])
def test_the_loop_takes_kerass_cells(mask, stacked):
    _, cells = stacks()
    flags = {"return_sequences": True, "return_state": True, "go_backwards": True}
    ours = RNN(stacked(cells), **flags)
    theirs = keras.layers.RNN(cells, zero_output_for_mask=True, **flags)
    close(built(ours)(floats(B, S, D), mask=mask), theirs(floats(B, S, D), mask=mask))


def test_kerass_loop_takes_our_stack():
    cells, _ = stacks()
    ours = built(RNN(StackedCells(cells), return_sequences=True))
    theirs = keras.layers.RNN(ours.cell, return_sequences=True)
    close(theirs(floats(B, S, D)), ours(floats(B, S, D)))


class Counter(keras.layers.Layer):
    """A cell whose output is not its state: the number of steps, and twice it."""

    state_size = 3

    def call(self, inputs, states):
        [count] = states
        return 2 * count + 2, count + 1


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_a_last_output_is_the_cells_and_not_its_state(mask):
    layer = RNN(Counter(), return_state=True)
    last, count = layer(floats(B, S, D), mask=mask)
    steps = [5, 5] if mask is None else mask.sum(axis=1)
    close([last[:, 0], count[:, 0]], [2.0 * np.array(steps), np.array(steps)])


def test_a_mask_leaves_in_the_order_of_the_outputs():
    token_ids = np.array([[3, 1, 2, 4, 5], [6, 2, 3, 0, 0]])
    embedded = keras.layers.Embedding(7, D, mask_zero=True)(token_ids)
    outputs = GRU(U, return_sequences=True, go_backwards=True)(embedded)
    mask = ops.convert_to_numpy(outputs._keras_mask)
    np.testing.assert_array_equal(mask, right_padded([5, 3], S)[:, ::-1])
    assert np.all(ops.convert_to_numpy(outputs)[~mask] == 0)
    assert np.all(ops.convert_to_numpy(outputs)[mask] != 0)
