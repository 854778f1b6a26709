"""What Keras's fused functions are given, and what is made of what they give; no GPU is needed.

A stand-in takes what cuDNN takes, refuses what it refuses, and leaves its padding as cuDNN does.
"""

import ast
import inspect
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras import composites
from seqkeras.composites import cudnn
from seqkeras.recurrent import GRU, LSTM, Bidirectional
from tests import references
from tests.arrays import BACKEND, close, floats, needs_tensorflow, numbers
from tests.catalogue.case import B, D, S, U
from tests.seqkeras.recurrent.rivals import MASKS, built, every_mask, states

BACKENDS = Path(inspect.getfile(keras)).parent / "src" / "backend"
LSTM_ARGUMENTS = (
    "inputs, initial_state_h, initial_state_c, mask, kernel, recurrent_kernel, bias, activation, "
    "recurrent_activation, return_sequences=False, go_backwards=False, unroll=False"
)
GRU_ARGUMENTS = (
    "inputs, initial_state, mask, kernel, recurrent_kernel, bias, activation, "
    "recurrent_activation, return_sequences=False, go_backwards=False, unroll=False"
)


@pytest.mark.parametrize("name, expected", [("lstm", LSTM_ARGUMENTS), ("gru", GRU_ARGUMENTS)])
@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_the_backends_of_keras_have_the_functions_that_we_call(backend, name, expected):
    source = ast.parse((BACKENDS / backend / "rnn.py").read_text(encoding="utf-8"))
    [arguments] = [
        ast.unparse(each.args)
        for each in source.body
        if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    assert arguments.startswith(expected)
    own = {"reset_after=True", "batch_first=True", "time_major=False"}  # which we leave as they are
    assert set(arguments.removeprefix(expected).split(", ")) <= {"", *own}


class StandIn:
    """An `LSTM` or `GRU` of cuDNN's, computed by the plain loop; it keeps what it was given."""

    def __init__(self, reference, num_states):
        self.reference, self.num_states, self.masks = reference, num_states, []

    def __call__(self, sequence, *tensors, return_sequences=False):
        states, (mask, *weights, activation, recurrent_activation) = (
            tensors[: self.num_states],
            tensors[self.num_states :],
        )
        assert return_sequences
        assert activation is keras.activations.tanh
        assert recurrent_activation is keras.activations.sigmoid
        assert all(ops.is_tensor(each) for each in weights)
        mask = None if mask is None else numbers(mask)
        self.masks.append(mask)
        if mask is not None:  # as `_assert_valid_mask` of Keras has it
            assert np.all(mask[:, 0]) and np.all(mask[:, 1:] <= mask[:, :-1])
        outputs, states = self.reference(
            numbers(sequence), mask, [numbers(each) for each in states], numbers(weights)
        )
        outputs, *states = (ops.cast(each, "float32") for each in (outputs, *states))
        return outputs[:, -1], outputs, states


@pytest.fixture
def stand_ins(monkeypatch):
    found = {"lstm": StandIn(references.lstm, 2), "gru": StandIn(references.gru, 1)}
    monkeypatch.setattr(cudnn.backend, "lstm", found["lstm"])
    monkeypatch.setattr(cudnn.backend, "gru", found["gru"])
    monkeypatch.setattr(cudnn, "on_gpu", lambda tensor=None: True)
    return found


CELLS = {"lstm": (LSTM, references.lstm, 2), "gru": (GRU, references.gru, 1)}
every_cell = pytest.mark.parametrize("cell", CELLS)
needs_fused = pytest.mark.skipif(BACKEND == "jax", reason="on JAX our own loop is the faster one")


@needs_tensorflow
@pytest.mark.parametrize("go_backwards", [False, True])
@every_mask
@every_cell
def test_on_a_gpu_any_mask_is_right(cell, mask, go_backwards, stand_ins):
    layer_class, reference, num_states = CELLS[cell]
    layer = built(
        layer_class(U, return_sequences=True, return_state=True, go_backwards=go_backwards)
    )
    sequences, initial = floats(B, S, D), states(num_states)
    outputs, *final = layer(sequences, mask=mask, initial_state=initial)
    assert len(stand_ins[cell].masks) == 1
    expected, expected_final = reference(
        sequences, mask, initial, layer.get_weights(), reverse=go_backwards
    )
    expected = expected[:, ::-1] if go_backwards else expected
    close([outputs, *final], [expected, *expected_final])


@needs_fused
@every_cell
def test_both_directions_reach_it(cell, stand_ins):
    layer_class, *_ = CELLS[cell]
    layer = built(Bidirectional(layer_class(U, return_sequences=True)))
    layer(floats(B, S, D))
    assert len(stand_ins[cell].masks) == 2


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow's takes masks")
@every_cell
def test_a_masked_sequence_goes_round_a_function_that_takes_no_mask(cell, stand_ins):
    layer_class, reference, num_states = CELLS[cell]
    layer, mask = built(layer_class(U, return_sequences=True)), MASKS["right-padded"]
    outputs = layer(floats(B, S, D), mask=mask)
    assert stand_ins[cell].masks == []
    zeros = [np.zeros((B, U))] * num_states
    close(outputs, reference(floats(B, S, D), mask, zeros, layer.get_weights())[0])


@needs_fused
@every_cell
def test_dropout_of_the_state_goes_round_it_and_dropout_of_the_inputs_does_not(cell, stand_ins):
    layer_class, *_ = CELLS[cell]
    sequences = floats(B, S, D)
    built(layer_class(U, recurrent_dropout=0.3))(sequences, training=True)
    assert stand_ins[cell].masks == []
    built(layer_class(U, dropout=0.3))(sequences, training=True)
    assert len(stand_ins[cell].masks) == 1


@every_cell
def test_a_function_that_keras_does_not_have_here_is_replaced(cell, monkeypatch):
    layer_class, *_ = CELLS[cell]
    layer = built(layer_class(U))
    expected = layer(floats(B, S, D))

    def missing(*args, **kwargs):
        raise NotImplementedError

    monkeypatch.setattr(cudnn.backend, "lstm", missing)
    monkeypatch.setattr(cudnn.backend, "gru", missing)
    monkeypatch.setattr(cudnn, "on_gpu", lambda tensor=None: True)
    close(layer(floats(B, S, D)), expected)


@pytest.mark.skipif(BACKEND != "jax", reason="the others use cuDNN")
@pytest.mark.parametrize("options", [{}, {"use_cudnn": False}], ids=str)
@every_cell
def test_on_jax_our_own_loop_is_taken_on_a_gpu_too(cell, options, stand_ins):
    layer_class, reference, num_states = CELLS[cell]
    layer = built(layer_class(U, return_sequences=True, **options))
    assert layer.cell.is_composite
    zeros = [np.zeros((B, U))] * num_states
    expected, _ = reference(floats(B, S, D), None, zeros, layer.get_weights())
    close(layer(floats(B, S, D)), expected)
    assert stand_ins[cell].masks == []


@every_cell
def test_without_a_gpu_no_fused_function_is_asked(cell, stand_ins, monkeypatch):
    monkeypatch.setattr(cudnn, "on_gpu", lambda tensor=None: False)
    built(CELLS[cell][0](U))(floats(B, S, D))
    assert stand_ins[cell].masks == []


@pytest.mark.parametrize("names", [(), ("simple_rnn",), ("lstm", "gru")], ids=str)
@every_cell
@needs_tensorflow
def test_a_graph_for_export_holds_no_fused_function(cell, names, stand_ins):
    import tensorflow as tf

    layer = built(CELLS[cell][0](U))
    with composites.as_nodes(names):
        tf.function(lambda x: layer(x), autograph=False).get_concrete_function(
            tf.TensorSpec((None, None, D))
        )
    assert stand_ins[cell].masks == []


@needs_tensorflow
@every_cell
def test_a_layer_that_reaches_cudnn_is_not_compiled_by_xla(cell, monkeypatch):
    layer_class = CELLS[cell][0]
    assert layer_class(U).supports_jit
    monkeypatch.setattr(cudnn, "on_gpu", lambda tensor=None: True)
    assert not layer_class(U).supports_jit
    assert not Bidirectional(layer_class(U)).supports_jit
