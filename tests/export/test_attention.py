"""Attention leaves as one node, with a handful around it, and agrees with Keras."""

import numpy as np
import pytest
import tensorflow as tf

from seqkeras import composites
from seqkeras.attention import MultiHeadAttention
from seqkeras.models import Bert
from seqkeras.serving.manifest import TensorSpec
from seqkeras.transformer import DecoderBlock, EncoderBlock
from tests.arrays import built, close, floats, right_padded
from tests.export.running import converted, optimized, require_agreement, run

B, N, T, S, H = 2, 3, 5, 7, 11
D = N * H
QUERY = TensorSpec("query", "float32", ("batch", N, "target_length", H))
KEYS = [TensorSpec(name, "float32", ("batch", N, "source_length", H)) for name in ("key", "value")]


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


@pytest.mark.parametrize(
    "biased, options",
    [
        (False, {}),
        (True, {}),
        (True, {"causal": True}),
        pytest.param(False, {"scale": 0.7}, marks=pytest.mark.long),
        pytest.param(False, {"causal": True}, marks=pytest.mark.long),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", MASKS)
def test_attention_becomes_one_node_that_agrees(name, biased, options):
    mask, shape = MASKS[name]

    def function(query, key, value, mask=None, bias=None):
        return {"context": composites.attention(query, key, value, mask, bias, **options)}

    more = [TensorSpec("mask", "bool", shape)] if shape else []
    inputs = {"query": floats(B, N, T, H), "key": floats(B, N, S, H, seed=1)}
    inputs |= {"value": floats(B, N, S, H, seed=2)} | ({"mask": mask} if shape else {})
    if biased:
        more += [TensorSpec("bias", "float32", (1, N, "target_length", "source_length"))]
        inputs["bias"] = 3 * floats(1, N, T, S, seed=3)
    graph = converted(function, QUERY, *KEYS, *more)
    assert graph.node_counts()["MultiHeadAttention"] == 1
    assert not {"Softmax", "MatMul", "Einsum"} & set(graph.node_counts())
    context = require_agreement(graph, function, inputs)["context"]
    if name in ("padding", "of positions", "of heads"):
        assert not np.any(context[0, 0, 0])  # it may attend to nothing


SEQUENCE = TensorSpec("sequence", "float32", ("batch", "length", D))
ENCODED = TensorSpec("encoded", "float32", ("batch", "source_length", 17))
LENGTHS = TensorSpec("lengths", "int64", ("batch",))


def test_an_encoder_block_is_attention_and_a_handful_of_nodes():
    block = built(EncoderBlock(D, N, 13, activation="gelu"), (None, None, D))

    def function(sequence, lengths):
        mask = tf.sequence_mask(lengths, tf.shape(sequence)[1])
        return {"outputs": block(sequence, attention_mask=mask[:, None])}

    graph = converted(function, SEQUENCE, LENGTHS)
    counts = graph.node_counts()
    expected = {"Attention": 1, "MatMul": 3, "LayerNormalization": 2, "Gelu": 1, "Add": 5}
    assert {name: counts[name] for name in expected} == expected
    assert not {"MultiHeadAttention", "Transpose", "Softmax"} & set(counts)
    inputs = {"sequence": floats(B, T, D), "lengths": np.array([5, 3])}
    outputs, answers = run(graph, inputs)["outputs"], function(**inputs)["outputs"]
    real = right_padded([5, 3], T)
    close(outputs[real], np.array(answers)[real], rtol=1e-4, atol=1e-5)


def test_attention_to_another_sequence_keeps_its_own_products():
    shape = (None, None, 17)
    layer = built(MultiHeadAttention(N, H), (None, None, D), shape, shape)

    def function(sequence, encoded):
        return {"outputs": layer(sequence, encoded, encoded)}

    graph = converted(function, SEQUENCE, ENCODED)
    counts = graph.node_counts()
    assert (counts["MultiHeadAttention"], counts["MatMul"]) == (1, 4)
    assert not {"Attention", "Transpose", "Reshape"} & set(counts)
    inputs = {"sequence": floats(B, T, D), "encoded": floats(B, S, 17, seed=1)}
    require_agreement(graph, function, inputs)


def test_a_decoder_block_agrees():
    block = DecoderBlock(D, N, 13, activation="gelu_tanh", pre_norm=True)
    built(block, (None, None, D), (None, None, 17))

    def function(sequence, encoded, lengths):
        mask = tf.sequence_mask(lengths, tf.shape(encoded)[1])
        return {"outputs": block(sequence, encoded, encoded_mask=mask)}

    graph = converted(function, SEQUENCE, ENCODED, LENGTHS)
    counts = graph.node_counts()
    assert (counts["Attention"], counts["MultiHeadAttention"], counts["FastGelu"]) == (1, 1, 1)
    inputs = {"sequence": floats(B, T, D), "encoded": floats(B, S, 17, seed=1)}
    require_agreement(graph, function, inputs | {"lengths": np.array([4, 7])})


def test_an_encoder_of_two_blocks_agrees_and_onnx_runtime_fuses_what_stands_around(tmp_path):
    bert = built(Bert(31, D, 2, N, 13))

    def function(token_ids, lengths):
        return {"outputs": bert({"token_ids": token_ids, "lengths": lengths})["hidden"]}

    graph = converted(function, TensorSpec("token_ids", "int64", ("batch", "length")), LENGTHS)
    counts = graph.node_counts()
    assert (counts["Attention"], counts["LayerNormalization"], counts["Gelu"]) == (2, 5, 2)
    assert sum(counts.values()) <= 60
    ids = np.random.default_rng(0).integers(0, 31, (3, T))
    inputs = {"token_ids": ids, "lengths": np.array([5, 3, 1])}
    outputs, answers = run(graph, inputs)["outputs"], np.array(function(**inputs)["outputs"])
    real = right_padded([5, 3, 1], T)
    close(outputs[real], answers[real], rtol=1e-4, atol=1e-4)
    counts = optimized(graph, tmp_path, "EXTENDED").node_counts()
    # Per block: attention; its output, and two products; two sums with what they normalise.
    expected = {"Attention": 2, "MatMul": 6, "BiasGelu": 2, "SkipLayerNormalization": 5}
    assert {name: counts.get(name) for name in expected} == expected
    assert "LayerNormalization" not in counts
    assert counts["Add"] == 1  # of the embeddings
    assert sum(counts.values()) <= 45
