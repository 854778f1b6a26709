"""Models of a single pass leave as one graph: every family, a user's own, and Keras's."""

import re

import keras
import numpy as np
import pytest
from keras import layers

from seqkeras import models
from seqkeras.attention import Attention, ScaledDotScore
from seqkeras.export.families import plan_export
from seqkeras.export.onnx_graphs import convert
from seqkeras.recurrent import LSTM, QRNN, Bidirectional
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import close, floats, numbers, randomize
from tests.catalogue import FIRST, transformer_models, trees
from tests.catalogue import models as recurrent_cases
from tests.conftest import others_long
from tests.export.running import run

IN_ONE_GO = (
    models.Bert,
    models.WithHeads,
    models.SentenceEncoder,
    models.BiDAF,
    models.BiLM,
    models.Forecaster,
    models.TreeClassifier,
)
CASES = [
    case
    for family in (recurrent_cases, transformer_models, trees)
    for case in family.CASES
    if re.match(rf"({'|'.join(kind.__name__ for kind in IN_ONE_GO)})\b", case.name)
]

# The families that convert quickly; the others are for `make test-all`.
SHORT = {case for case in FIRST if case.name.startswith(("Forecaster", "Bert", "WithHeads"))}


def agree(graphs, signatures, inputs):
    """Hold the graphs against the functions that they were made of."""
    for role, graph in graphs.items():
        signature = signatures[role]
        feed = {spec.name: np.asarray(inputs[spec.name], spec.dtype) for spec in signature.inputs}
        actual, expected = run(graph, feed), numbers(signature.function(**feed))
        assert set(actual) == set(expected)
        for spec in signature.outputs:
            assert actual[spec.name].ndim == len(spec.shape)
            close(actual[spec.name], expected[spec.name], rtol=1e-4, atol=1e-4)


def exported(model, inputs=None):
    signatures = plan_export(model, inputs).graphs
    graphs = {
        role: convert(each.function, each.inputs, each.outputs, role)
        for role, each in signatures.items()
    }
    return graphs, signatures


def test_every_family_that_answers_in_a_single_pass_is_in_the_catalogue():
    built = {type(case.build()) for case in CASES}
    assert built >= set(IN_ONE_GO)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in SHORT else pytest.mark.long) for case in CASES],
    ids=lambda case: case.name,
)
def test_a_model_of_the_catalogue_leaves_as_graphs_that_agree(case):
    model = case.build()
    graphs, signatures = exported(model)
    inputs = case.inputs()
    if "lengths" not in inputs and "token_ids" in inputs:
        full = np.full(inputs["token_ids"].shape[:-1], inputs["token_ids"].shape[-1])
        inputs = {**inputs, "lengths": full}
    if "segment_ids" not in inputs and "token_ids" in inputs:
        inputs = {**inputs, "segment_ids": np.zeros_like(inputs["token_ids"])}
    if any(spec.name == "masked_positions" for spec in signatures["model"].inputs):
        inputs = {**inputs, "masked_positions": np.array([[3, 1, 2], [0, 2, 0]])}
    if "lengths" not in inputs and "window" in inputs:
        inputs = {**inputs, "lengths": np.full(len(inputs["window"]), inputs["window"].shape[1])}
    agree(graphs, signatures, inputs)


@keras.saving.register_keras_serializable("tests")
class Own(keras.Model):
    """A user's own model of our layers: a QRNN that attends to itself."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(23, 12)
        self.qrnn = QRNN(8, window=2, return_sequences=True)
        self.lstm = Bidirectional(LSTM(5, return_sequences=True))
        self.attention = Attention(ScaledDotScore())
        self.out = layers.Dense(3)

    def call(self, token_ids):
        x = self.lstm(self.qrnn(self.embedding(token_ids)))
        context, _ = self.attention(x, x, x)
        return {"logits": self.out(context)}


def test_a_users_model_of_our_layers_leaves_too():
    model = Own()
    token_ids = np.random.default_rng(0).integers(0, 23, (3, 37))
    model(token_ids)
    with pytest.raises(ValueError, match="not known what a Own is called with; name them, as"):
        plan_export(model)
    graphs, signatures = exported(model, [TensorSpec("token_ids", "int64", ("batch", "length"))])
    counts = graphs["model"].node_counts()
    assert (counts["LSTM"], counts["Scan"]) == (1, 1)
    assert "Loop" not in counts
    agree(graphs, signatures, {"token_ids": token_ids})


def keras_model(*parts, mask_zero=True):
    """Token ids, an embedding with a mask, and what is behind it."""
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.Embedding(23, 12, mask_zero=mask_zero)(token_ids)
    for part in parts:
        x = part(x)
    model = keras.Model(token_ids, x)
    randomize(model)
    return model


def exact_gelu(x):
    return keras.activations.gelu(x, approximate=False)


KERAS = {
    "exact GELU": lambda: keras_model(layers.Dense(7, activation=exact_gelu)),
    "multi-head attention": lambda: keras_model(lambda x: layers.MultiHeadAttention(3, 4)(x, x)),
    "bidirectional LSTM": lambda: keras_model(
        layers.Bidirectional(layers.LSTM(5, return_sequences=True))
    ),
    "cells": lambda: keras_model(layers.RNN([layers.LSTMCell(5), layers.GRUCell(4)])),
    "normalisations": lambda: keras_model(
        layers.LayerNormalization(), layers.RMSNormalization(), mask_zero=False
    ),
    "convolutions": lambda: keras_model(
        layers.Conv1D(6, 3, padding="causal", activation="relu"),
        layers.SeparableConv1D(5, 3, padding="same"),
        layers.GlobalMaxPooling1D(),
        mask_zero=False,
    ),
    "causal attention": lambda: keras_model(
        lambda x: layers.MultiHeadAttention(3, 4)(x, x, use_causal_mask=True)
    ),
    "attention": lambda: keras_model(lambda x: layers.Attention()([x, x])),
    "additive attention": lambda: keras_model(lambda x: layers.AdditiveAttention()([x, x])),
    "bidirectional GRU": lambda: keras_model(layers.Bidirectional(layers.GRU(5))),
    "simple RNN": lambda: keras_model(layers.SimpleRNN(5, go_backwards=True)),
    "pooling": lambda: keras_model(layers.GlobalAveragePooling1D()),
}


@pytest.mark.parametrize("name", others_long(KERAS, 6))
def test_a_plain_keras_model_leaves_op_by_op(name):
    graphs, signatures = exported(KERAS[name]())
    token_ids = np.random.default_rng(0).integers(1, 23, (3, 7))
    token_ids[1, 4:] = token_ids[2, 1:] = 0
    agree(graphs, signatures, {"token_ids": token_ids})
    if name == "exact GELU":
        assert graphs["model"].node_counts()["Gelu"] == 1


def test_a_keras_nlp_bert_leaves():
    from seqkeras.quiet import import_tensorflow

    import_tensorflow()
    keras_nlp = pytest.importorskip("keras_nlp")
    model = keras_nlp.models.BertBackbone(
        vocabulary_size=23,
        num_layers=2,
        num_heads=3,
        hidden_dim=12,
        intermediate_dim=17,
        max_sequence_length=16,
    )
    randomize(model)
    graphs, signatures = exported(model)
    random = np.random.default_rng(0)
    agree(
        graphs,
        signatures,
        {
            "token_ids": random.integers(0, 23, (3, 7)),
            "segment_ids": random.integers(0, 2, (3, 7)),
            "padding_mask": np.arange(7) < np.array([[7], [3], [5]]),
        },
    )


def test_several_inputs_keep_lengths_of_their_own():
    left, right = (keras.Input((None, 5), name=name) for name in ("left", "right"))
    shared = layers.GRU(7)
    model = keras.Model([left, right], layers.Dot(1)([shared(left), shared(right)]))
    graphs, signatures = exported(model)
    shapes = [spec.shape for spec in signatures["model"].inputs]
    assert shapes == [("batch", "left_axis_1", 5), ("batch", "right_axis_1", 5)]
    agree(graphs, signatures, {"left": floats(3, 7, 5), "right": floats(3, 11, 5, seed=1)})
