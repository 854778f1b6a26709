"""A language model that others trained and published: from its file to its probabilities."""

import json

import h5py
import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.attention import Attention, DotScore
from seqkeras.recurrent import LSTM
from tests.arrays import close
from tests.conftest import public_data

LENGTH = 40  # characters that the model sees


def from_cudnn(kernel, recurrent_kernel, bias):
    """Keras's layout from that of cuDNN: each gate's matrices as (units, dim), and two biases."""
    dim, units = kernel.shape[0], recurrent_kernel.shape[0]
    gates = [each.reshape(units, dim).T for each in np.split(kernel, 4, axis=1)]
    recurrent_gates = [each.T for each in np.split(recurrent_kernel, 4, axis=1)]
    return [np.hstack(gates), np.hstack(recurrent_gates), np.sum(np.split(bias, 2), axis=0)]


def read_weights():
    """(layer, weight) -> array, from the HDF5 file that Keras 2.1.5 wrote."""
    weights = {}

    def keep(name, item):
        if isinstance(item, h5py.Dataset):
            layer, _, weight = name.split("/")
            weights[layer, weight.removesuffix(":0")] = item[()]

    with h5py.File(public_data("weights-textgenrnn/textgenrnn_weights.hdf5")) as file:
        file.visititems(keep)
    return weights


def lstm_weights(weights, layer):
    return from_cudnn(*(weights[layer, name] for name in ("kernel", "recurrent_kernel", "bias")))


@pytest.fixture(scope="module")
def model():
    """Embedding, two LSTMs, the weighted average of all three over time, softmax."""
    weights = read_weights()
    token_ids = keras.Input((LENGTH,), dtype="int32")
    outputs = [keras.layers.Embedding(465, 100, name="embedding")(token_ids)]
    for name in ("rnn_1", "rnn_2"):
        outputs.append(LSTM(128, return_sequences=True, name=name)(outputs[-1]))
    every = ops.concatenate(outputs, axis=-1)  # (B, 40, 356)
    query = ops.zeros_like(every[:, :1]) + weights["attention", "attention_W"][:, 0]
    context, _ = Attention(DotScore())(query=query, key=every, value=every)
    output = keras.layers.Dense(465, activation="softmax", name="output")(context[:, 0])
    model = keras.Model(token_ids, output)
    model.get_layer("embedding").set_weights([weights["embedding", "embeddings"]])
    for name in ("rnn_1", "rnn_2"):
        model.get_layer(name).set_weights(lstm_weights(weights, name))
    model.get_layer("output").set_weights([weights["output", name] for name in ("kernel", "bias")])
    return model


@pytest.fixture(scope="module")
def vocabulary():
    return json.loads(
        public_data("weights-textgenrnn/textgenrnn_vocab.json").read_text(encoding="utf-8")
    )


def encode(text, vocabulary):
    ids = [vocabulary.get(each, 0) for each in ["<s>", *text][-LENGTH:]]
    return [0] * (LENGTH - len(ids)) + ids


@pytest.fixture(scope="module")
def reference():
    return json.loads(
        public_data("weights-textgenrnn/reference_outputs.json").read_text(encoding="utf-8")
    )


def test_cudnn_weights_become_those_of_keras():
    weights = read_weights()
    with np.load(public_data("weights-textgenrnn/keras_lstm_layout.npz")) as stored:
        for layer in ("rnn_1", "rnn_2"):
            names = ("kernel", "recurrent_kernel", "bias")
            expected = [stored[f"{layer}_{name}"] for name in names]
            close(lstm_weights(weights, layer), expected, rtol=0)


def test_probabilities_are_the_published_models(model, vocabulary, reference):
    token_ids = np.array([encode(prompt, vocabulary) for prompt in reference["prompts"]])
    with np.load(public_data("weights-textgenrnn/reference_probs.npz")) as stored:
        assert np.array_equal(token_ids, stored["input_ids"])
        assert np.abs(model.predict_on_batch(token_ids) - stored["probs"]).max() < 1e-4


def test_the_greedy_text_is_the_published_models(model, vocabulary, reference):
    characters = {id_: character for character, id_ in vocabulary.items()}
    texts = list(reference["prompts"][: len(reference["greedy_40"])])
    longest = max(len(each) for each in reference["greedy_40"])
    while any(len(text) < longest for text in texts):
        token_ids = np.array([encode(text, vocabulary) for text in texts])
        probabilities = model.predict_on_batch(token_ids)
        texts = [
            text + characters.get(int(best), "")
            for text, best in zip(texts, probabilities.argmax(axis=-1), strict=True)
        ]
    for text, expected in zip(texts, reference["greedy_40"], strict=True):
        assert text[: len(expected)] == expected
