import functools
import logging
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from seqkeras import recurrent
from seqkeras.export import onnx_graphs
from seqkeras.export.families.decoders import encoder_decoder_graphs
from seqkeras.export.onnx_graphs import convert
from seqkeras.serving.manifest import TensorSpec
from tests.arrays import close, floats, numbers
from tests.catalogue import seq2seq
from tests.conftest import others_long
from tests.export.running import converted, graphs_of, optimized, require_agreement, run
from tests.serving.written import specs

X = TensorSpec("x", "float32", ("batch", 7))
Y = TensorSpec("y", "float32", ("batch", 7))


def test_sizes_that_can_not_be_followed_are_refused_by_their_layer(caplog):
    layer = keras.layers.Conv1DTranspose(4, 5, padding="same", name="my_layer")
    inputs = [TensorSpec("x", "float32", ("batch", "length", 7))]
    outputs = [TensorSpec("y", "float32", ("batch", "length", 4))]
    message = "^toy: not a graph that can run: sizes after my_layer.* can not be inferred: "
    with pytest.raises(ValueError, match=message):
        convert(lambda x: {"y": layer(x)}, inputs, outputs, name="toy")
    assert not caplog.records


class Spectrum(keras.layers.Layer):
    def call(self, x):
        return ops.rfft(x)[0]


@pytest.mark.parametrize(
    "function, message",
    [
        (
            lambda x: ops.slice_update(x, [0, 1], ops.zeros((1, 2))),
            r"not every part has an ONNX operator: .*\bXlaDynamicUpdateSlice\b",
        ),
        (tf.math.lgamma, r"not every part has an ONNX operator: .*\bLgamma\b"),
        (
            Spectrum(name="my_spectrum"),
            "not every part has an ONNX operator: my_spectrum.*/rfft: .*only allows Complex",
        ),
        (
            keras.layers.Dense(7, dtype="bfloat16", name="my_dense"),
            "my_dense.* is computed in bfloat16, which onnxrun",
        ),
    ],
)
def test_what_can_not_be_converted_is_refused_by_name_and_not_logged(function, message, capfd):
    if isinstance(function, keras.layers.Layer):
        function.build((None, 7))
    logger = logging.getLogger("tf2onnx")
    before = logger.level, logger.propagate, list(logger.handlers)
    capfd.readouterr()
    with pytest.raises(ValueError, match=f"^toy: {message}") as refusal:
        convert(lambda x: {"y": function(x)}, [X], [Y], name="toy")
    assert "Counter" not in str(refusal.value)  # how tf2onnx sums up
    assert (logger.level, logger.propagate, list(logger.handlers)) == before
    assert not re.search("toy|Lgamma", "".join(capfd.readouterr()))


@pytest.mark.parametrize("best", [ops.argmax, ops.argmin])
def test_the_places_of_the_best_are_one_node(best):
    def function(x):
        return {"y": best(x, axis=-1)}

    graph = converted(function, X)
    counts = graph.node_counts()
    assert counts.pop("Cast", 0) <= 1 and list(counts.values()) == [1]
    require_agreement(graph, function, {"x": floats(5, 7)})


def test_tensors_keep_their_names_their_order_and_their_symbolic_shapes():
    def function(b, a):
        return {"sum": a + b, "difference": a - b}

    inputs, outputs = (
        tuple(TensorSpec(name, "float32", ("batch", "length", 3)) for name in names)
        for names in (("b", "a"), ("sum", "difference"))
    )
    graph = convert(function, inputs, outputs, name="toy")
    assert specs(graph.model.graph.input) == inputs
    assert specs(graph.model.graph.output) == outputs
    require_agreement(graph, function, {"a": floats(2, 5, 3), "b": floats(2, 5, 3, seed=1)})


def test_where_becomes_where():
    def function(x):
        return {"y": ops.where(x > 0, x, -1.0)}

    assert convert(function, [X], [Y], name="toy").node_counts() == {"Greater": 1, "Where": 1}


@functools.cache
def graphs(case):
    """A tiny seq2seq model and its two ONNX graphs."""
    model = case.build()
    return model, graphs_of(encoder_decoder_graphs(model))


FIRST = [seq2seq.BAHDANAU[0], seq2seq.CLASSICAL[3], seq2seq.HEADS[1]]
OTHERS = [*seq2seq.BAHDANAU, *seq2seq.CLASSICAL, *seq2seq.LUONG, seq2seq.HARD[1], *seq2seq.HEADS]
EXPORTED = [*FIRST, *(case for case in OTHERS if case not in FIRST)]
every_model = pytest.mark.parametrize("case", others_long(EXPORTED), ids=lambda case: case.name)
WITH_SIMPLE_CELLS = "RNNSeq2Seq(initial_state alone)"
# What runs: nodes after ONNX Runtime's basic optimizations, and those of them that multiply.
COUNTS = {
    ("RNNSeq2Seq(gru)", "encoder"): (25, {"GRU": 1, "Gemm": 1, "MatMul": 1}),
    ("RNNSeq2Seq(gru)", "decoder_step"): (47, {"GRU": 1, "MatMul": 5}),
    ("RNNSeq2Seq(lstm)", "encoder"): (28, {"LSTM": 1, "Gemm": 1, "MatMul": 1}),
    ("RNNSeq2Seq(lstm)", "decoder_step"): (53, {"LSTM": 1, "MatMul": 5}),
}


@pytest.mark.parametrize("role", ["encoder", "decoder_step"])
@every_model
def test_the_graphs_of_a_seq2seq_model_hold_few_nodes_and_no_loop(case, role, tmp_path):
    _, exported = graphs(case)
    loops = {"Scan"} if (case.name, role) == (WITH_SIMPLE_CELLS, "encoder") else set()
    assert {"Loop", "Scan", "If"} & set(exported[role].node_counts()) == loops
    if case in seq2seq.BAHDANAU:
        counts = optimized(exported[role], tmp_path, "BASIC").node_counts()
        multiplying = {
            name: counts[name] for name in counts if name in ("GRU", "LSTM", "Gemm", "MatMul")
        }
        assert (sum(counts.values()), multiplying) == COUNTS[case.name, role]


@every_model
def test_the_encoder_graph_gives_the_state_that_keras_gives(case):
    model, exported = graphs(case)
    inputs = {name: case.inputs()[name] for name in ("token_ids", "lengths")}
    expected = numbers(model.encode(**inputs))
    actual = run(exported["encoder"], inputs)
    assert list(actual) == list(expected) == [entry.name for entry in model.state_entries]
    for name in actual:
        assert actual[name].dtype == expected[name].dtype
        close(actual[name], expected[name], rtol=1e-4, atol=1e-5)


@every_model
def test_the_decoder_step_graph_reorders_steps_and_ranks(case):
    model, exported = graphs(case)
    B, K, k = 2, 3, 5
    state = numbers(model.encode(case.inputs()["token_ids"], case.inputs()["lengths"]))
    beams = [entry for entry in model.state_entries if entry.per == "beam"]
    for seed, entry in enumerate(beams):
        state[entry.name] = (3 * floats(B, K, *entry.shape, seed=seed)).astype(entry.dtype)
    token_ids = np.array([[7, 11, 7], [13, 2, 3]])
    beam_index = np.array([[2, 0, 0], [3, 5, 4]])
    inputs = {"token_ids": token_ids, "beam_index": beam_index, "k": np.array(k)}
    actual = run(exported["decoder_step"], inputs | state)

    reordered = dict(state)
    for entry in beams:
        rows = state[entry.name].reshape(B * K, *entry.shape)
        reordered[entry.name] = rows[beam_index]
    (logits, *weights), after = numbers(model.step(token_ids, reordered))
    log_probs = numbers(ops.log_softmax(logits))
    close(actual["logits"], logits, rtol=1e-4, atol=1e-5)
    assert ("attention_weights" in actual) == bool(weights)
    for each in weights:
        close(actual["attention_weights"], each, rtol=1e-4, atol=1e-5)
    for entry in beams:
        close(actual[f"next_{entry.name}"], after[entry.name], rtol=1e-4, atol=1e-5)
    best = np.argsort(-log_probs, axis=-1)[..., :k]
    np.testing.assert_array_equal(actual["candidate_ids"], best)
    expected = np.take_along_axis(log_probs, best, axis=-1)
    close(actual["candidate_log_probs"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer_of", [keras.layers.GRU, recurrent.GRU], ids=["Keras", "ours"])
def test_a_recurrent_layer_without_a_lowering_exports_op_by_op(layer_of, monkeypatch):
    monkeypatch.setattr(onnx_graphs, "LOWERINGS", {})
    layer = layer_of(5, return_sequences=True)
    layer.build((None, None, 3))

    def function(sequence, mask):
        return {"outputs": layer(sequence, mask=mask)}

    sequence = TensorSpec("sequence", "float32", ("batch", "length", 3))
    graph = converted(function, sequence, TensorSpec("mask", "bool", ("batch", "length")))
    assert graph.node_counts().get("Loop") == 1
    mask = np.arange(7) < np.array([[7], [4]])
    inputs = {"sequence": floats(2, 7, 3), "mask": mask}
    require_agreement(graph, function, inputs, rtol=1e-5, atol=1e-6)
