import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import GRU, LSTM, Bidirectional, SimpleRNN
from tests import references
from tests.arrays import close, floats, gradients, numbers, randomize, right_padded
from tests.catalogue.case import B, D, S, U

LAYERS = {
    "SimpleRNN": (SimpleRNN, references.rnn, keras.layers.SimpleRNN, 1),
    "LSTM": (LSTM, references.lstm, keras.layers.LSTM, 2),
    "GRU": (GRU, references.gru, keras.layers.GRU, 1),
}
MASKS = {
    "no mask": None,
    "right-padded": right_padded([5, 3], S),
    "left-padded": right_padded([5, 3], S)[:, ::-1],
    "holes and an empty row": np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool),
}
every_layer = pytest.mark.parametrize("name", LAYERS)
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)


def states(count):
    return [floats(B, U, seed=index) for index in range(count)]


def built(layer):
    layer.build((None, None, D))
    return randomize(layer)


@every_layer
@every_mask
@pytest.mark.parametrize("go_backwards", [False, True])
def test_a_layer_is_the_papers_formula(name, mask, go_backwards):
    layer_class, reference, _, num_states = LAYERS[name]
    layer = built(
        layer_class(U, return_sequences=True, return_state=True, go_backwards=go_backwards)
    )
    sequence, initial = floats(B, S, D), states(num_states)
    outputs, *final = layer(sequence, mask=mask, initial_state=initial)
    expected, expected_final = reference(
        sequence, mask, initial, layer.get_weights(), reverse=go_backwards
    )
    close([outputs, *final], [expected, *expected_final])


@every_layer
@every_mask
def test_a_bidirectional_layer_is_the_papers_formula(name, mask):
    layer_class, reference, _, num_states = LAYERS[name]
    layer = built(Bidirectional(layer_class(U, return_sequences=True, return_state=True)))
    sequence, zeros = floats(B, S, D), [np.zeros((B, U))] * (2 * num_states)
    weights = layer.get_weights()
    outputs, *final = layer(sequence, mask=mask)
    expected, expected_final = references.bidirectional(
        reference, sequence, mask, zeros, weights[:3], weights[3:]
    )
    close([outputs, *final], [expected, *expected_final])


@every_layer
@pytest.mark.parametrize("mask", list(MASKS.values())[:3], ids=list(MASKS)[:3])
def test_outputs_and_gradients_are_those_of_keras(name, mask):
    layer_class, _, keras_class, num_states = LAYERS[name]
    ours = built(layer_class(U, return_sequences=True, return_state=True))
    theirs = keras_class(U, return_sequences=True, return_state=True, zero_output_for_mask=True)
    theirs.build((None, None, D))
    theirs.set_weights(ours.get_weights())
    sequence, initial = floats(B, S, D), states(num_states)
    weights = [floats(B, S, U), *states(num_states)]

    def loss(layer):
        results = layer(sequence, mask=mask, initial_state=initial)
        return sum(ops.sum(each * weight) for each, weight in zip(results, weights, strict=True))

    close(
        ours(sequence, mask=mask, initial_state=initial),
        theirs(sequence, mask=mask, initial_state=initial),
    )
    close(gradients(ours, loss), gradients(theirs, loss), atol=1e-5)


@every_layer
def test_a_bidirectional_layer_has_the_outputs_and_gradients_of_keras(name):
    layer_class, _, keras_class, _ = LAYERS[name]
    ours = built(Bidirectional(layer_class(U, return_sequences=True)))
    theirs = keras.layers.Bidirectional(
        keras_class(U, return_sequences=True, zero_output_for_mask=True)
    )
    theirs.build((None, S, D))
    theirs.set_weights(ours.get_weights())
    sequence, mask, weight = floats(B, S, D), MASKS["right-padded"], floats(B, S, 2 * U)

    def loss(layer):
        return ops.sum(layer(sequence, mask=mask) * weight)

    close(ours(sequence, mask=mask), theirs(sequence, mask=mask))
    close(gradients(ours, loss), gradients(theirs, loss), atol=1e-5)


@every_layer
def test_a_layer_without_sequences_returns_the_last_real_output(name):
    layer_class, *_ = LAYERS[name]
    mask = MASKS["right-padded"]
    layer = built(layer_class(U))
    whole = built(layer_class(U, return_sequences=True))
    sequence = floats(B, S, D)
    outputs = numbers(whole(sequence, mask=mask))
    close(layer(sequence, mask=mask), np.stack([outputs[0, 4], outputs[1, 2]]))


@pytest.mark.parametrize("bidirectional", [False, True])
@every_layer
def test_a_mask_comes_from_an_embedding_and_goes_on(name, bidirectional):
    layer_class, *_ = LAYERS[name]
    layer = layer_class(U, return_sequences=True, return_state=True)
    layer = built(Bidirectional(layer) if bidirectional else layer)
    token_ids = np.array([[3, 1, 2, 4, 5], [6, 2, 3, 0, 0]])
    embedded = keras.layers.Embedding(7, D, mask_zero=True)(token_ids)
    results = layer(embedded)
    close(results, layer(numbers(embedded), mask=token_ids != 0))
    masks = [getattr(each, "_keras_mask", None) for each in results]
    np.testing.assert_array_equal(ops.convert_to_numpy(masks[0]), token_ids != 0)
    assert masks[1:] == [None] * (len(results) - 1)


@every_layer
def test_a_last_output_has_no_mask(name):
    layer_class, *_ = LAYERS[name]
    assert layer_class(U).compute_mask(None, MASKS["right-padded"]) is None


@every_layer
def test_a_sequence_that_is_none_is_refused(name):
    layer_class, *_ = LAYERS[name]
    message = rf"{name}: sequence must have shape \(batch, length, dim\); received \({B}, {D}\)\."
    with pytest.raises(ValueError, match=message):
        layer_class(U)(floats(B, D))


@pytest.mark.parametrize(
    "layer",
    [
        lambda: LSTM(U),
        lambda: GRU(U, return_sequences=True, go_backwards=True),
        lambda: keras.layers.LSTM(U, return_sequences=True),
        lambda: Bidirectional(GRU(U, return_sequences=True)),
    ],
    ids=["no sequences", "backwards", "Keras's own", "bidirectional"],
)
def test_bidirectional_refuses_what_it_can_not_turn_round(layer):
    message = (
        r"^Bidirectional: layer must be a SimpleRNN, LSTM or GRU with return_sequences=True and "
        r"go_backwards=False; received <"
    )
    with pytest.raises(ValueError, match=message):
        Bidirectional(layer())


@every_layer
def test_the_halves_of_a_bidirectional_layer_are_its_two_layers(name):
    layer_class, *_ = LAYERS[name]
    layer = built(Bidirectional(layer_class(U, return_sequences=True)))
    sequence, mask = floats(B, S, D), MASKS["right-padded"]
    halves = ops.split(layer(sequence, mask=mask), 2, axis=-1)
    close(halves[0], layer.forward_layer(sequence, mask=mask))
    close(halves[1], layer.backward_layer(sequence, mask=mask))


def test_bidirectional_takes_a_layer_that_is_built():
    forward = built(LSTM(U, return_sequences=True))
    outputs = Bidirectional(forward)(floats(B, S, D))
    close(outputs[:, :, :U], forward(floats(B, S, D)))
