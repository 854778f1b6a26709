import re

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import (
    GRU,
    LSTM,
    QRNN,
    RNN,
    Bidirectional,
    GRUCell,
    SimpleRNN,
    StackedCells,
)
from tests import references
from tests.arrays import BACKEND, close, floats, numbers, right_padded
from tests.autodiff import gradients_of
from tests.catalogue.case import B, D, S, U
from tests.seqkeras.recurrent.rivals import (
    LAYERS,
    MASKS,
    built,
    every_layer,
    every_mask,
    results_and_gradients,
    states,
)


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
@every_mask
def test_a_bidirectional_layer_is_the_papers_formula(name, mask):
    layer_class, reference, _, num_states = LAYERS[name]
    layer = built(Bidirectional(layer_class(U, return_sequences=True, return_state=True)))
    sequences, initial = floats(B, S, D), states(2 * num_states)
    weights = layer.get_weights()
    outputs, *final = layer(sequences, mask=mask, initial_state=initial)
    expected, expected_final = references.bidirectional(
        reference, sequences, mask, initial, weights[:3], weights[3:]
    )
    close([outputs, *final], [expected, *expected_final])


@pytest.mark.skipif(BACKEND != "tensorflow", reason="Keras's others multiply in float32")
@pytest.mark.parametrize("mask", ["no mask", "holes and an empty row"])
@every_layer
def test_gradients_are_the_slopes_of_the_papers_formula(name, mask):
    layer_class, reference, _, num_states = LAYERS[name]
    layer = built(layer_class(U, return_sequences=True, return_state=True, dtype="float64"))
    initial = states(num_states, "float64")
    values = [*layer.get_weights(), floats(B, S, D).astype("float64"), *initial]
    given = values[3], initial, MASKS[mask]
    results, gradients = results_and_gradients(layer, *given)

    def loss(values):
        *weights, sequences = values[:4]
        outputs, final = reference(sequences, MASKS[mask], values[4:], weights)
        each = zip([outputs, *final], results, strict=True)
        return sum(
            np.sum(one * floats(*other.shape, seed=50 + index))
            for index, (one, other) in enumerate(each)
        )

    step, largest = 1e-3, max(np.max(np.abs(each)) for each in gradients)
    for index, gradient in enumerate(gradients):
        along = floats(*gradient.shape, seed=90 + index).astype("float64")
        along /= np.linalg.norm(along)

        def moved(steps, index=index, along=along):
            there = values[index] + steps * step * along
            return loss([*values[:index], there, *values[index + 1 :]])

        # Of sixth order in the step.
        odd = [moved(steps) - moved(-steps) for steps in (1, 2, 3)]
        slope = (45 * odd[0] - 9 * odd[1] + odd[2]) / (60 * step)
        assert abs(np.sum(gradient * along) - slope) <= 1e-9 * largest


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
        return lambda values: ops.sum(squared_slopes(layer, weights, *values))

    values = [floats(B, S, D), weights[0]]
    expected = gradients_of(penalty(theirs), values)
    assert np.max(np.abs(expected[1])) > 0
    close(gradients_of(penalty(ours), values), expected, rtol=1e-4, atol=1e-5)


def squared_slopes(layer, weights, sequences, kernel):
    """The squares of the gradient of a layer's output by its sequences, to be differentiated."""

    def loss(sequences):
        fixed = [each.value for each in layer.non_trainable_variables]
        outputs, _ = layer.stateless_call([kernel, *weights[1:]], fixed, sequences)
        return ops.sum(ops.sin(outputs))

    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(sequences)
            result = loss(sequences)
        return tape.gradient(result, sequences) ** 2
    if BACKEND == "torch":
        import torch

        return torch.autograd.grad(loss(sequences), sequences, create_graph=True)[0] ** 2
    import jax

    return jax.grad(loss)(sequences) ** 2


@every_layer
def test_a_layer_without_sequences_returns_the_last_real_output(name):
    layer_class, *_ = LAYERS[name]
    mask = MASKS["right-padded"]
    layer = built(layer_class(U))
    whole = built(layer_class(U, return_sequences=True))
    sequences = floats(B, S, D)
    outputs = numbers(whole(sequences, mask=mask))
    close(layer(sequences, mask=mask), np.stack([outputs[0, 4], outputs[1, 2]]))


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


@pytest.mark.parametrize("mask", ["no mask", "right-padded"])
@every_layer
def test_numbers_that_are_none_in_the_padding_reach_no_output(name, mask):
    layer_class, *_ = LAYERS[name]
    layer, sequences = built(layer_class(U)), floats(B, S, D)
    expected = layer(sequences, mask=MASKS["right-padded"])
    sequences[1, 3:] = np.nan
    outputs = numbers(layer(sequences, mask=MASKS[mask]))
    if mask == "no mask":
        assert np.all(np.isnan(outputs[1]))
    else:
        close(outputs, expected)


@every_layer
def test_a_sequence_that_is_none_is_refused(name):
    layer_class, *_ = LAYERS[name]
    for layer in (layer_class(U), Bidirectional(layer_class(U))):
        who = type(layer).__name__
        message = (
            rf"{who}: sequences must have shape \(batch, length, dim\); received \({B}, {D}\)\."
        )
        with pytest.raises(ValueError, match=message):
            layer(floats(B, D))


@pytest.mark.parametrize(
    "layer, count",
    [
        (lambda: LSTM(U), 2),
        (lambda: GRU(U), 1),
        (lambda: Bidirectional(SimpleRNN(U)), 2),
        (lambda: Bidirectional(QRNN(U)), 4),
    ],
    ids=["LSTM", "GRU", "Bidirectional", "Bidirectional(QRNN)"],
)
def test_the_number_of_initial_states_must_be_right(layer, count):
    layer = layer()
    message = (
        rf"{type(layer).__name__}: initial_state must hold {count} tensors; received {count + 1}\."
    )
    with pytest.raises(ValueError, match=message):
        layer(floats(B, S, D), initial_state=states(count + 1))


@pytest.mark.parametrize(
    "layer, sizes",
    [
        (lambda: LSTM(U), [U, U]),
        (lambda: SimpleRNN(U), [U]),
        (lambda: RNN([GRUCell(U), GRUCell(U + 2)]), [U, U + 2]),
        (lambda: RNN(keras.layers.GRUCell(U)), [U]),
    ],
    ids=["LSTM", "SimpleRNN", "stack", "Keras's cell"],
)
def test_the_shapes_of_initial_states_must_be_right(layer, sizes):
    layer, wrong = layer(), [*sizes[:-1], sizes[-1] + 1]
    message = (
        f"{type(layer).__name__}: initial_state must hold tensors of shapes "
        f"{[(B, size) for size in sizes]}; received {[(B, width) for width in wrong]}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        layer(floats(B, S, D), initial_state=[floats(B, width) for width in wrong])


BOTH = [
    lambda: Bidirectional(LSTM(U)),
    lambda: Bidirectional(QRNN(U, window=1)),
    lambda: Bidirectional(keras.layers.GRU(U)),
]


@pytest.mark.parametrize("make", BOTH, ids=["LSTM", "QRNN", "Keras's GRU"])
def test_the_shapes_of_both_directions_initial_states_must_be_right(make):
    layer = make()
    wrong = [floats(B, U)] * (layer.num_states - 1) + [floats(B, U + 1)]
    shapes = [(B, U)] * layer.num_states
    received = [each.shape for each in wrong]
    message = (
        f"Bidirectional: initial_state must hold tensors of shapes {shapes}; received {received}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        layer(floats(B, S, D), initial_state=wrong)


@pytest.mark.parametrize("make", [lambda: LSTM(U), lambda: GRU(U), lambda: QRNN(U, 1), *BOTH])
def test_initial_states_of_another_batch_are_refused(make):
    layer = make()
    count = layer.num_states if isinstance(layer, (Bidirectional, QRNN)) else len(layer.state_size)
    message = (
        f"{type(layer).__name__}: initial_state must hold tensors of shapes {[(B, U)] * count}; "
        f"received {[(B + 1, U)] * count}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        layer(floats(B, S, D), initial_state=[floats(B + 1, U)] * count)


@pytest.mark.parametrize("make", [lambda: LSTM(U), BOTH[0], lambda: QRNN(U)])
def test_a_mask_that_is_a_list_is_refused(make):
    message = rf"mask must have the shape .*, \({B}, {S}\); received a list\."
    with pytest.raises(ValueError, match=message):
        make()(floats(B, S, D), mask=[[True] * S] * B)


@pytest.mark.parametrize("make", [lambda: LSTM(U), BOTH[0], lambda: QRNN(U)])
@pytest.mark.parametrize("shape", [(B, 1), (1, S), (B, S, 1)], ids=str)
def test_a_mask_that_would_broadcast_is_refused(make, shape):
    layer = make()
    message = (
        f"{type(layer).__name__}: mask must have the shape (batch, length) of the sequence, "
        f"{(B, S)}; received {shape}."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        layer(floats(B, S, D), mask=np.ones(shape, bool))


@pytest.mark.parametrize(
    "layer",
    [
        lambda: GRU(U, return_sequences=True, go_backwards=True),
        lambda: QRNN(U, go_backwards=True),
        lambda: keras.layers.Dense(U),
        lambda: GRUCell(U),
        lambda: Bidirectional(GRU(U, return_sequences=True)),
    ],
    ids=["backwards", "QRNN, backwards", "not recurrent", "a cell", "bidirectional"],
)
def test_bidirectional_refuses_what_it_can_not_turn_round(layer):
    message = (
        r"^Bidirectional: layer must be a recurrent layer, such as LSTM, QRNN or RNN\(cell\), with "
        r"go_backwards=False; received <.*>\.$"
    )
    with pytest.raises(ValueError, match=message):
        Bidirectional(layer())


@pytest.mark.parametrize("cells", [[], [LSTM]], ids=["none", "a class"])
def test_a_stack_of_no_cells_is_refused(cells):
    message = r"^StackedCells: cells must be a list of at least one cell; received \["
    with pytest.raises(ValueError, match=message):
        StackedCells(cells)


@every_layer
def test_the_halves_of_a_bidirectional_layer_are_its_two_layers(name):
    layer_class, *_ = LAYERS[name]
    layer = built(Bidirectional(layer_class(U, return_sequences=True)))
    sequences, mask = floats(B, S, D), MASKS["right-padded"]
    halves = ops.split(layer(sequences, mask=mask), 2, axis=-1)
    close(halves[0], layer.forward_layer(sequences, mask=mask))
    close(ops.flip(halves[1], axis=1), layer.backward_layer(sequences, mask=mask))


def test_bidirectional_takes_a_layer_that_is_built():
    forward = built(LSTM(U, return_sequences=True))
    outputs = Bidirectional(forward)(floats(B, S, D))
    close(outputs[:, :, :U], forward(floats(B, S, D)))


def test_a_stack_of_keras_is_one_of_ours():
    cells = [keras.layers.LSTMCell(3), keras.layers.GRUCell(5)]
    layer = RNN(keras.layers.StackedRNNCells(cells), return_sequences=True)
    sequences = floats(B, S, D)
    rival = keras.layers.RNN(keras.layers.StackedRNNCells(cells), return_sequences=True)
    close(layer(sequences), rival(sequences))
