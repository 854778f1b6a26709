"""Recurrent layers as graphs: the nodes left around the native one, and the numbers of Keras."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.export.onnx_graphs import convert
from seqkeras.masks import padding_mask
from seqkeras.recurrent import GRU, LSTM, Bidirectional, SimpleRNN
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import floats, randomize
from tests.conftest import others_long
from tests.export.running import converted, require_agreement

B, T, D, U = 3, 4, 5, 6
SEQUENCE = TensorSpec("sequence", "float32", ("batch", "length", D))
LENGTHS = TensorSpec("lengths", "int64", ("batch",))
MASK = TensorSpec("mask", "bool", ("batch", "length"))
STATE = TensorSpec("state", "float32", ("batch", U))
X = {"sequence": floats(B, T, D)}
LAYERS = {
    "lstm": lambda: LSTM(U, return_sequences=True, return_state=True),
    "gru": lambda: GRU(U, return_sequences=True, return_state=True),
    "bidirectional": lambda: Bidirectional(LSTM(U, return_sequences=True, return_state=True)),
}


def built(layer, dim=D):
    layer.build((None, None, dim))
    return randomize(layer)


def named(results):
    return {f"y{number}": each for number, each in enumerate(results)}


@pytest.mark.parametrize("portable", others_long([False, True]), ids=["onnxruntime", "portable"])
@pytest.mark.parametrize("kind", LAYERS)
def test_lengths_go_to_the_native_node_and_zeros_do_not(kind, portable):
    layer = built(LAYERS[kind]())

    def function(sequence, lengths):
        return named(layer(sequence, mask=padding_mask(lengths, ops.shape(sequence)[1])))

    graph = converted(function, SEQUENCE, LENGTHS, portable=portable)
    around = graph.node_counts().keys() & {"Expand", "Where", "If"}
    # A row without a step: other runtimes may not give zeros.
    assert around == ({"Expand", "Where"} if portable else set())
    [node] = [each for each in graph.nodes if each.op_type in ("GRU", "LSTM")]
    assert len(node.input) == 5
    require_agreement(graph, function, X | {"lengths": np.array([T, 0, 2])}, 1e-5, 1e-6)


def test_lengths_leave_a_simple_network_without_branches():
    layer = built(SimpleRNN(U, return_sequences=True, return_state=True))

    def function(sequence, lengths):
        return named(layer(sequence, mask=padding_mask(lengths, ops.shape(sequence)[1])))

    graph = converted(function, SEQUENCE, LENGTHS)
    assert "If" not in graph.node_counts()
    require_agreement(graph, function, X | {"lengths": np.array([T, 0, 2])}, 1e-5, 1e-6)


def test_the_zeros_of_a_loop_are_of_the_size_of_its_steps():
    first, second = (built(SimpleRNN(D, return_sequences=True)) for _ in range(2))

    def function(sequence, lengths):
        mask = padding_mask(lengths, ops.shape(sequence)[1])
        return {"y": second(first(sequence, mask=mask), mask=mask)}

    graph = converted(function, SEQUENCE, LENGTHS)
    assert graph.node_counts()["Transpose"] == 2  # between the layers none
    require_agreement(graph, function, X | {"lengths": np.array([T, 0, 2])}, 1e-5, 1e-6)


def test_what_is_given_stays():
    layer = built(LAYERS["gru"]())

    def function(sequence, mask, state):
        return named(layer(sequence, mask=mask, initial_state=[state]))

    graph = converted(function, SEQUENCE, MASK, STATE)
    assert graph.node_counts()["If"] == 2  # before the node and behind it
    assert "Where" in [node.op_type for node in graph.nodes]  # of rows without a step
    given = X | {"state": floats(B, U, seed=1)}
    mask = np.arange(T) < np.array([[T], [0], [2]])
    for each in (mask, mask[:, ::-1]):
        require_agreement(graph, function, given | {"mask": each}, 1e-5, 1e-6)


def test_a_mask_that_no_length_makes_is_asked_whether_it_is_right_padded():
    layer = built(LSTM(U, return_sequences=True))
    outputs = [TensorSpec("y", "float32", ("batch", "length", U))]

    def behind(sequence, lengths):
        steps = ops.arange(ops.shape(sequence)[1], dtype="int64")
        return {"y": layer(sequence, mask=lengths[:, None] <= steps[None])}

    def beside(sequence, lengths):
        steps = 1 + ops.arange(ops.shape(sequence)[1], dtype="int64")
        return {"y": layer(sequence, mask=steps[:, None] < lengths[None])}

    for function in (behind, beside):
        graph = convert(function, [SEQUENCE, LENGTHS], outputs, "toy")
        assert graph.node_counts()["If"] == 2


@pytest.mark.parametrize(
    ("mask_of_second", "branches"), [(lambda mask: mask, 2), (lambda mask: mask[:, ::-1], 4)]
)
def test_steps_stay_in_order_between_nodes_of_one_mask(mask_of_second, branches):
    first, second = built(LAYERS["gru"]()), built(SimpleRNN(D, return_sequences=True), U)

    def function(sequence, mask):
        outputs = first(sequence, mask=mask)[0]
        return {"y": second(outputs, mask=mask_of_second(mask))}

    graph = converted(function, SEQUENCE, MASK)
    assert graph.node_counts()["If"] == branches
    for mask in (np.eye(B, T, dtype=bool), ~np.eye(B, T, dtype=bool), np.tri(B, T, dtype=bool)):
        require_agreement(graph, function, X | {"mask": mask}, 1e-5, 1e-6)


def test_keras_layers_begin_at_zeros_too():
    layer = built(keras.layers.LSTM(U))

    def function(sequence):
        return {"y": layer(sequence)}

    graph = converted(function, SEQUENCE)
    assert "Expand" not in graph.node_counts()
    require_agreement(graph, function, X, 1e-5, 1e-6)
