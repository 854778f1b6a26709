"""Our formulas against the test vectors of the ONNX operators that they become."""

import json

import numpy as np
import pytest

from seqkeras.recurrent.gru import gru
from seqkeras.recurrent.lstm import lstm
from seqkeras.recurrent.simple_rnn import simple_rnn
from tests import references
from tests.arrays import close
from tests.conftest import public_data

LAYERS = {
    "RNN": (simple_rnn, references.rnn, [0], 1),
    "LSTM": (lstm, references.lstm, [0, 2, 3, 1], 2),
    "GRU": (gru, references.gru, [0, 1, 2], 1),
}  # and ONNX's place of each of Keras's gates
CASES = [
    "simple_rnn_defaults",
    "simple_rnn_with_initial_bias",
    "rnn_seq_length",
    "simple_rnn_batchwise",
    "lstm_defaults",
    "lstm_with_initial_bias",
    "lstm_batchwise",
    "gru_defaults",
    "gru_with_initial_bias",
    "gru_batchwise",
]


def read(name):
    """The operator, its sequence (B, T, D), its weights as Keras has them, Y (B, T, U), Y_h."""
    case = json.loads(public_data("onnx-op-vectors/cases.json").read_text())[name]
    with np.load(public_data(f"onnx-op-vectors/{name}.npz")) as file:
        arrays = dict(file)
    gates, units = LAYERS[case["op"]][2], case["attributes"]["hidden_size"]
    width = len(gates) * units
    biases = arrays.get("in_B", np.zeros((1, 2 * width), np.float32)).reshape(2, width)
    kernel, recurrent_kernel, biases = (
        np.concatenate([np.split(weight, len(gates), axis=-1)[gate] for gate in gates], axis=-1)
        for weight in (arrays["in_W"][0].T, arrays["in_R"][0].T, biases)
    )
    bias = biases if case["op"] == "GRU" else biases.sum(axis=0)
    batch_first = case["attributes"].get("layout")
    sequence = arrays["in_X"] if batch_first else arrays["in_X"].swapaxes(0, 1)
    last = arrays["out_Y_h"][:, 0] if batch_first else arrays["out_Y_h"][0]
    return case["op"], sequence, (kernel, recurrent_kernel, bias), last


def zeros(sequence, weights, count):
    return [np.zeros((len(sequence), weights[1].shape[0]), np.float32)] * count


@pytest.mark.parametrize("name", CASES)
def test_composites_give_the_vectors_of_onnx(name):
    operator, sequence, weights, expected = read(name)
    network, _, _, num_states = LAYERS[operator]
    outputs, last, *_ = network(sequence, None, zeros(sequence, weights, num_states), weights)
    close(last, expected)
    close(outputs[:, -1], expected)
