import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import LSTM, Bidirectional
from tests.arrays import close, floats, numbers, right_padded
from tests.autodiff import gradients_of, squared_slopes
from tests.catalogue.case import B, D, S, U
from tests.seqkeras.recurrent.rivals import LAYERS, MASKS, built, every_layer, every_mask, states


@every_layer
@every_mask
@pytest.mark.parametrize("go_backwards", [False, True])
def test_a_layer_is_the_papers_formula(name, mask, go_backwards):
    layer_class, reference, _, num_states = LAYERS[name]
    layer = built(
        layer_class(U, return_sequences=True, return_state=True, go_backwards=go_backwards)
    )
    sequences, initial = floats(B, S, D), states(num_states)
    outputs, *final = layer(sequences, mask=mask, initial_state=initial)
    expected, expected_final = reference(
        sequences, mask, initial, layer.get_weights(), reverse=go_backwards
    )
    # As Keras's, the outputs are in the order in which they were computed.
    expected = expected[:, ::-1] if go_backwards else expected
    close([outputs, *final], [expected, *expected_final])


@every_layer
def test_a_mask_of_the_state_is_one_for_all_steps_and_has_the_right_gradients(name):
    """Beside the formula whose recurrent product takes h times the mask, step by step."""
    layer_class, _, _, num_states = LAYERS[name]
    weights = built(layer_class(U)).get_weights()
    factors = np.random.default_rng(0).integers(0, 2, (B, U)) * np.float32(2)
    run, real = layer_class.cell_class.network, right_padded([5, 3], S)

    def together(values):
        sequence, *tensors = values
        return run(sequence, real, tensors[:num_states], tensors[num_states:], factors)

    def step_by_step(values):
        sequence, *tensors = values
        now, outputs = tensors[:num_states], []
        for t in range(S):
            output, *new = run(sequence[:, t : t + 1], None, now, tensors[num_states:], factors)
            now = [ops.where(real[:, t, None], one, old) for one, old in zip(new, now)]
            outputs.append(ops.where(real[:, t, None], output[:, 0], 0.0))
        return ops.stack(outputs, axis=1), *now

    def loss_of(function):
        return lambda values: sum(ops.sum(ops.sin(each)) for each in function(values))

    values = [floats(B, S, D), *states(num_states), *weights]
    close(together(values), step_by_step([ops.convert_to_tensor(each) for each in values]))
    expected = gradients_of(loss_of(step_by_step), values)
    close(gradients_of(loss_of(together), values), expected, atol=1e-5)


@every_layer
def test_gradients_of_gradients_are_right(name):
    """Of |d loss / d x|^2, beside the gradient of Keras's own loop; by x and the kernel."""
    layer_class, _, keras_class, _ = LAYERS[name]
    weights = built(layer_class(U)).get_weights()
    ours, theirs = layer_class(U), keras_class(U)

    def penalty(layer):
        layer.build((None, S, D))
        fixed = [each.value for each in layer.non_trainable_variables]

        def of(values):
            sequences, kernel = values

            def loss(values):
                outputs, _ = layer.stateless_call([kernel, *weights[1:]], fixed, *values)
                return ops.sum(ops.sin(outputs))

            return squared_slopes(loss, [sequences])

        return of

    values = [floats(B, S, D), weights[0]]
    expected = gradients_of(penalty(theirs), values)
    assert np.max(np.abs(expected[1])) > 0
    close(gradients_of(penalty(ours), values), expected, rtol=1e-4, atol=1e-5)


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
    assert Bidirectional(layer_class(U)).compute_mask(None, MASKS["right-padded"]) is None


def test_bidirectional_takes_a_layer_that_is_built():
    forward = built(LSTM(U, return_sequences=True))
    outputs = Bidirectional(forward)(floats(B, S, D))
    close(outputs[:, :, :U], forward(floats(B, S, D)))


@every_layer
def test_without_a_layer_around_it_mixed_precision_holds_step_by_step(name):
    layer = built(LAYERS[name][0](U, activation="relu", dtype="mixed_bfloat16"))
    plain = LAYERS[name][0](U, activation="relu")
    plain.build((None, None, D))
    plain.set_weights(layer.get_weights())
    values = [
        [each.value for each in variables]
        for variables in (layer.trainable_variables, layer.non_trainable_variables)
    ]
    outputs, _ = layer.stateless_call(*values, floats(B, S, D))
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    np.testing.assert_allclose(
        numbers(ops.cast(outputs, "float32")), plain(floats(B, S, D)), atol=0.1, rtol=0.1
    )
