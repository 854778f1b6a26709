"""Attention, layer normalisation and GELU leave as one node each, and agree with Keras."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf

from seqkeras import composites
from seqkeras.attention import MultiHeadAttention
from seqkeras.export.families import plan_export
from seqkeras.export.graph import Graph
from seqkeras.export.onnx_graphs import convert
from seqkeras.models import Bert
from seqkeras.serving.manifest import TensorSpec
from seqkeras.transformer import DecoderBlock, EncoderBlock
from tests.arrays import close, floats, randomize, right_padded
from tests.conftest import others_long
from tests.export.running import run

B, N, T, S, H = 2, 3, 5, 7, 11
D = N * H
QUERY = TensorSpec("query", "float32", ("batch", N, "target_length", H))
KEYS = [TensorSpec(name, "float32", ("batch", N, "source_length", H)) for name in ("key", "value")]
CONTEXT = [TensorSpec("context", "float32", ("batch", N, "target_length", H))]


def booleans(*shape):
    """A mask whose first row may attend to nothing."""
    mask = np.random.default_rng(0).random(shape) < 0.6
    mask[0, 0, 0] = False
    return mask


MASKS = {  # name -> the mask, its symbolic shape
    "none": (None, ()),
    "padding": (right_padded([0, 4], S)[:, None, None], ("batch", 1, 1, "source_length")),
    "one of padding": (right_padded([4], S)[:, None, None], (1, 1, 1, "source_length")),
    "of positions": (booleans(B, 1, T, S), ("batch", 1, "target_length", "source_length")),
    "of heads": (booleans(B, N, T, S), ("batch", N, "target_length", "source_length")),
    "for all rows": (booleans(1, 1, T, S), (1, 1, "target_length", "source_length")),
}


@pytest.mark.parametrize("options", others_long([{}, {"scale": 0.7}, {"causal": True}]), ids=str)
@pytest.mark.parametrize("name", MASKS)
def test_attention_becomes_one_node_that_agrees(name, options):
    mask, shape = MASKS[name]

    def function(query, key, value, mask=None):
        return {"context": composites.attention(query, key, value, mask, **options)}

    specs = [QUERY, *KEYS, *([TensorSpec("mask", "bool", shape)] if shape else [])]
    graph = convert(function, specs, CONTEXT, "attention")
    assert graph.node_counts()["MultiHeadAttention"] == 1
    assert not {"Softmax", "MatMul", "Einsum"} & set(graph.node_counts())
    inputs = {"query": floats(B, N, T, H), "key": floats(B, N, S, H, seed=1)}
    inputs |= {"value": floats(B, N, S, H, seed=2)} | ({"mask": mask} if shape else {})
    context = run(graph, inputs)["context"]
    close(context, function(**inputs)["context"], rtol=1e-4, atol=1e-5)
    if name in ("padding", "of positions", "of heads"):
        assert not np.any(context[0, 0, 0])  # it may attend to nothing


@pytest.mark.parametrize("approximate, operator", [(False, "Gelu"), (True, "FastGelu")])
def test_gelu_becomes_one_node_that_agrees(approximate, operator):
    def function(x):
        return {"y": composites.gelu(x, approximate=approximate)}

    spec = TensorSpec("x", "float32", ("batch", "length"))
    graph = convert(function, [spec], [TensorSpec("y", "float32", spec.shape)], "gelu")
    assert graph.node_counts() == {operator: 1}
    x = np.linspace(-6, 6, 301, dtype=np.float32)[None]
    close(run(graph, {"x": x})["y"], function(tf.constant(x))["y"], rtol=1e-5, atol=1e-6)


def test_layer_normalisation_becomes_one_node_that_agrees():
    gamma, beta = tf.Variable(floats(D)), tf.Variable(floats(D, seed=1))

    def function(x):
        return {"y": composites.layer_norm(x, gamma, beta, epsilon=1e-3)}

    spec = TensorSpec("x", "float32", ("batch", "length", D))
    graph = convert(function, [spec], [TensorSpec("y", "float32", spec.shape)], "norm")
    assert graph.node_counts() == {"LayerNormalization": 1}
    x = floats(B, T, D, seed=2)
    close(run(graph, {"x": x})["y"], function(tf.constant(x))["y"], rtol=1e-5, atol=1e-5)


SEQUENCE = TensorSpec("sequence", "float32", ("batch", "length", D))
LENGTHS = TensorSpec("lengths", "int64", ("batch",))
OUTPUTS = [TensorSpec("outputs", "float32", ("batch", "length", D))]


def test_an_encoder_block_is_attention_and_a_handful_of_nodes():
    block = EncoderBlock(D, N, 13, activation="gelu")
    block.build((None, None, D))
    randomize(block)

    def function(sequence, lengths):
        mask = tf.sequence_mask(lengths, tf.shape(sequence)[1])
        return {"outputs": block(sequence, attention_mask=mask[:, None])}

    graph = convert(function, [SEQUENCE, LENGTHS], OUTPUTS, "block")
    counts = graph.node_counts()
    expected = {"Attention": 1, "MatMul": 3, "LayerNormalization": 2, "Gelu": 1, "Add": 5}
    assert {name: counts[name] for name in expected} == expected
    assert not {"MultiHeadAttention", "Transpose", "Softmax"} & set(counts)
    inputs = {"sequence": floats(B, T, D), "lengths": np.array([5, 3])}
    outputs, answers = run(graph, inputs)["outputs"], function(**inputs)["outputs"]
    real = right_padded([5, 3], T)
    close(outputs[real], np.array(answers)[real], rtol=1e-4, atol=1e-5)


def test_attention_to_another_sequence_keeps_its_own_products():
    layer = MultiHeadAttention(N, H)
    layer.build((None, None, D), (None, None, 17), (None, None, 17))
    randomize(layer)

    def function(sequence, encoded):
        return {"outputs": layer(sequence, encoded, encoded)}

    encoded = TensorSpec("encoded", "float32", ("batch", "source_length", 17))
    graph = convert(function, [SEQUENCE, encoded], OUTPUTS, "cross")
    counts = graph.node_counts()
    assert (counts["MultiHeadAttention"], counts["MatMul"]) == (1, 4)
    assert not {"Attention", "Transpose", "Reshape"} & set(counts)
    inputs = {"sequence": floats(B, T, D), "encoded": floats(B, S, 17, seed=1)}
    close(run(graph, inputs)["outputs"], function(**inputs)["outputs"], rtol=1e-4, atol=1e-5)


def test_a_decoder_block_agrees():
    block = DecoderBlock(D, N, 13, activation="gelu_tanh", pre_norm=True)
    block.build((None, None, D), (None, None, 17))
    randomize(block)

    def function(sequence, encoded, lengths):
        mask = tf.sequence_mask(lengths, tf.shape(encoded)[1])
        return {"outputs": block(sequence, encoded, encoded_mask=mask)}

    encoded = TensorSpec("encoded", "float32", ("batch", "source_length", 17))
    graph = convert(function, [SEQUENCE, encoded, LENGTHS], OUTPUTS, "block")
    counts = graph.node_counts()
    assert (counts["Attention"], counts["MultiHeadAttention"], counts["FastGelu"]) == (1, 1, 1)
    inputs = {"sequence": floats(B, T, D), "encoded": floats(B, S, 17, seed=1)}
    inputs["lengths"] = np.array([4, 7])
    close(run(graph, inputs)["outputs"], function(**inputs)["outputs"], rtol=1e-4, atol=1e-5)


def optimized(graph, path):
    """The graph as ONNX Runtime runs it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(
        graph.whole().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return Graph(onnx.load(path))


def test_onnx_runtime_fuses_what_stands_around_attention(tmp_path):
    bert = Bert(31, D, 2, N, 13)
    bert.build()
    signature = plan_export(bert).graphs["model"]
    graph = convert(signature.function, signature.inputs, signature.outputs, "bert")
    counts = optimized(graph, tmp_path / "optimized.onnx").node_counts()
    # Per block: attention; its output, and two products; two sums with what they normalise.
    expected = {"Attention": 2, "MatMul": 6, "BiasGelu": 2, "SkipLayerNormalization": 5}
    assert {name: counts.get(name) for name in expected} == expected
    assert "LayerNormalization" not in counts
    assert counts["Add"] == 1  # of the embeddings
    assert sum(counts.values()) <= 45


def test_an_encoder_of_two_blocks_agrees_on_the_real_tokens():
    bert = Bert(31, D, 2, N, 13)
    bert.build()
    randomize(bert)

    def function(token_ids, lengths):
        return {"outputs": bert({"token_ids": token_ids, "lengths": lengths})["hidden"]}

    token_ids = TensorSpec("token_ids", "int64", ("batch", "length"))
    graph = convert(function, [token_ids, LENGTHS], OUTPUTS, "bert")
    counts = graph.node_counts()
    assert (counts["Attention"], counts["LayerNormalization"], counts["Gelu"]) == (2, 5, 2)
    assert sum(counts.values()) <= 60
    ids = np.random.default_rng(0).integers(0, 31, (3, T))
    inputs = {"token_ids": ids, "lengths": np.array([5, 3, 1])}
    outputs, answers = run(graph, inputs)["outputs"], np.array(function(**inputs)["outputs"])
    real = right_padded([5, 3, 1], T)
    close(outputs[real], answers[real], rtol=1e-4, atol=1e-4)
