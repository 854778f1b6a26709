"""Models of a single pass leave as one graph: every family, and a user's own."""

import re

import keras
import numpy as np
import pytest
from keras import layers

from seqkeras import models
from seqkeras.attention import Attention, ScaledDotScore
from seqkeras.export.families import plan_export
from seqkeras.recurrent import LSTM, QRNN, Bidirectional
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import floats
from tests.catalogue import FIRST, transformer_models, trees
from tests.catalogue import models as recurrent_cases
from tests.export.running import graphs_of, require_agreement

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
        actual = require_agreement(graph, signature.function, feed, rtol=1e-4, atol=1e-4)
        for spec in signature.outputs:
            assert actual[spec.name].ndim == len(spec.shape)


def exported(model, inputs=None):
    signatures = plan_export(model, inputs).graphs
    return graphs_of(signatures), signatures


def test_every_family_that_answers_in_a_single_pass_is_in_the_catalogue():
    assert {case.layer_class for case in CASES} >= set(IN_ONE_GO)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in SHORT else pytest.mark.long) for case in CASES],
    ids=lambda case: case.name,
)
def test_a_model_of_the_catalogue_leaves_as_graphs_that_agree(case):
    model = case.build()
    graphs, signatures = exported(model)
    inputs = {"masked_positions": np.array([[3, 1, 2], [0, 2, 0]])} | case.inputs()
    if "token_ids" in inputs:
        *rows, length = inputs["token_ids"].shape
        full = {"lengths": np.full(rows, length), "segment_ids": 0 * inputs["token_ids"]}
        inputs = full | inputs
    elif "window" in inputs:
        rows, length, _ = inputs["window"].shape
        inputs = {"lengths": np.full(rows, length)} | inputs
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


def test_several_inputs_keep_lengths_of_their_own():
    left, right = (keras.Input((None, 5), name=name) for name in ("left", "right"))
    shared = layers.GRU(7)
    model = keras.Model([left, right], layers.Dot(1)([shared(left), shared(right)]))
    graphs, signatures = exported(model)
    shapes = [spec.shape for spec in signatures["model"].inputs]
    assert shapes == [("batch", "left_axis_1", 5), ("batch", "right_axis_1", 5)]
    agree(graphs, signatures, {"left": floats(3, 7, 5), "right": floats(3, 11, 5, seed=1)})
