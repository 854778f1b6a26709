import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.recurrent import QRNN
from tests import references
from tests.agreement import DTYPES
from tests.arrays import close, floats, numbers, randomize, right_padded
from tests.catalogue import qrnn
from tests.catalogue.case import B, D, S, U
from tests.complex_step import assert_equals_loops
from tests.conftest import others_long
from tests.references.qrnn import qrnn_row

RIGHT = right_padded([5, 3], S)
LEFT = RIGHT[:, ::-1]

every_pooling = pytest.mark.parametrize("pooling", ["f", "fo", "ifo"])
every_window = pytest.mark.parametrize("window", others_long([3, 1, 2, S + 2], 2))


def make(window=2, pooling="fo", **options):
    layer = QRNN(
        U, window=window, pooling=pooling, return_sequences=True, return_state=True, **options
    )
    layer.build((None, None, D))
    return randomize(layer)


def called(layer, inputs):
    sequences, *initial = [each for name, each in inputs.items() if name != "mask"]
    return layer(sequences, mask=inputs.get("mask"), initial_state=initial or None)


def expected(layer, weights, inputs):
    zeros = {"c": np.zeros((B, U)), "history": np.zeros((B, layer.window - 1, D))}
    states = [inputs.get(name, zero) for name, zero in zeros.items()]
    given = inputs["sequences"], inputs.get("mask")
    outputs, *final = references.qrnn(*given, states, weights, layer.pooling)
    return [outputs, *final[: layer.num_states]]


def assert_is_the_formula(pooling, window, dtype, inputs):
    assert_equals_loops(
        lambda: make(window, pooling, dtype=dtype),
        dtype,
        inputs,
        lambda layer: layer.weights,
        expected,
        called,
    )


@every_pooling
@every_window
@pytest.mark.parametrize("mask", [{}, {"mask": RIGHT}], ids=["no mask", "right-padded"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_layer_and_its_gradients_are_the_papers_formula(pooling, window, mask, dtype):
    inputs = {"sequences": floats(B, S, D), "c": floats(B, U), **mask}
    if window > 1:
        inputs["history"] = floats(B, window - 1, D, seed=1)
    assert_is_the_formula(pooling, window, dtype, inputs)


@every_pooling
def test_left_padding_is_the_zeros_before_the_sequence(pooling):
    inputs = {"sequences": floats(B, S, D), "mask": LEFT}
    assert_is_the_formula(pooling, 3, "float32", inputs)


@pytest.mark.parametrize("case", qrnn.SEQUENCES, ids=lambda case: case.name)
def test_one_step_at_a_time_is_all_at_once(case):
    layer, sequences = case.build(), case.inputs()["sequences"]
    state = layer.get_initial_state(B)
    outputs = []
    for t in range(S):
        output, state = layer.step(sequences[:, t], state)
        outputs.append(output)
    close([ops.stack(outputs, axis=1), *state], list(layer(sequences)))


@pytest.mark.parametrize("mask", [None, RIGHT, LEFT], ids=["no mask", "right", "left"])
def test_backwards_is_forwards_over_the_reversed_sequence(mask):
    layer = make(2, "fo", go_backwards=True)
    forwards = make(2, "fo")
    sequences = floats(B, S, D)
    turned = None if mask is None else mask[:, ::-1]
    close(list(layer(sequences, mask=mask)), list(forwards(sequences[:, ::-1], mask=turned)))


@pytest.mark.parametrize("mask", [None, RIGHT, LEFT], ids=["no mask", "right", "left"])
def test_without_sequences_it_returns_the_last_real_output(mask):
    layer, last = make(2, "ifo"), QRNN(U, pooling="ifo")
    sequences = floats(B, S, D)
    last.build(sequences.shape)
    last.set_weights(layer.get_weights())
    outputs = numbers(layer(sequences, mask=mask)[0])
    place = [S - 1, S - 1] if mask is not RIGHT else [4, 2]
    close(last(sequences, mask=mask), outputs[np.arange(B), place])


@every_pooling
def test_zoneout_is_the_papers_formula_in_training_only(pooling):
    layer = make(2, pooling, zoneout=0.4, seed=3)
    sequences = floats(B, S, D)
    kernel, bias = (each.astype("float64") for each in layer.get_weights())
    outputs = numbers(layer(sequences, training=True)[0])
    draws = keras.random.SeedGenerator(3)
    keep = numbers(keras.random.uniform((B, S, U), seed=draws)) >= 0.4
    assert 0.4 < keep.mean() < 0.8
    c, history = np.zeros(U), np.zeros((1, D))
    for row in range(B):
        expected, *_ = qrnn_row(sequences[row], kernel, bias, pooling, c, history, keep[row])
        close(outputs[row], expected)
    close(layer(sequences)[0], make(2, pooling)(sequences)[0])
    assert np.abs(numbers(layer(sequences, training=True)[0]) - outputs).max() > 0.01


@every_window
def test_a_stateful_layer_goes_on_where_the_last_batch_ended(window):
    stateful = QRNN(U, window, "ifo", return_sequences=True, stateful=True)
    whole = QRNN(U, window, "ifo", return_sequences=True)
    sequences = floats(B, 2 * S, D)
    stateful.build((B, S, D))
    whole.build((B, S, D))
    whole.set_weights(randomize(stateful).get_weights()[:2])
    for _ in range(2):
        stateful.reset_state()
        halves = [stateful(each) for each in np.split(sequences, 2, axis=1)]
        close(ops.concatenate(halves, axis=1), whole(sequences))
    between = whole.get_initial_state(B)
    close(stateful(sequences, initial_state=between), whole(sequences))


def test_the_mask_that_leaves_is_in_the_order_of_the_outputs():
    for go_backwards, expected in ((False, RIGHT), (True, LEFT)):
        layer = make(2, "fo", go_backwards=go_backwards)
        kept, *others = layer.compute_mask(None, ops.convert_to_tensor(RIGHT))
        np.testing.assert_array_equal(numbers(kept), expected)
        assert others == [None, None]
    assert QRNN(U).compute_mask(None, RIGHT) is None


def test_a_single_state_may_come_without_a_list():
    layer = QRNN(5, window=1)
    sequences, state = floats(2, 3, 7), floats(2, 5, seed=1)
    close(layer(sequences, initial_state=state), layer(sequences, initial_state=[state]))


def test_a_step_of_float64_arrays_has_the_dtype_of_the_layer():
    layer = QRNN(5)
    layer(floats(2, 3, 7))
    arrays = floats(2, 7), floats(2, 5), floats(2, 1, 7)
    inputs, *states = [array.astype("float64") for array in arrays]
    output, new = layer.step(inputs, states)
    expected, expected_states = layer.step(arrays[0], arrays[1:])
    close([output, *new], [expected, *expected_states])
    assert keras.backend.standardize_dtype(output.dtype) == "float32"
