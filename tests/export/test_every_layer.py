"""Every public layer leaves as a part of a user's own model, in both profiles, and agrees."""

import re

import keras
import numpy as np
import onnx
import pytest
from keras import tree

from seqkeras.export.composites import MICROSOFT
from seqkeras.runs.reference import named_outputs
from seqkeras.serving.manifest import TensorSpec
from tests.catalogue import CASES, call
from tests.catalogue.case import T
from tests.export.running import converted, require_agreement, require_true_sizes


def is_model(case):
    return issubclass(case.layer_class, keras.Model)


# Behind a comma stands what an option makes of a layer that is there without it; "general" is what
# makes no composite of a recurrent one.
LAYERS = [
    case
    for case in CASES
    if "," not in re.sub(r"\(.*\)|, general", "", case.name) and not is_model(case)
]


def spec(name, array, open_sizes):
    """The first axis is open, and axes of those sizes, but for the width of what is no mask."""
    last = array.ndim - 1 if array.dtype.kind == "f" else None
    sizes = [
        f"length_{size}" if axis != last and size in open_sizes else size
        for axis, size in enumerate(array.shape)
    ]
    return TensorSpec(name, array.dtype.name, ("batch", *sizes[1:]))


def signature(case):
    """A layer as a function of tensors by keyword, and its inputs."""
    layer, inputs = case.built(), case.inputs()
    sizes = {inputs[name].shape[axis] for name, axis in case.lengths.items()}
    if "query" in inputs:
        sizes.add(T)
    names = list(feed(inputs))

    def function(**tensors):
        given = tree.pack_sequence_as(inputs, [tensors[name] for name in names])
        return named_outputs(call(layer, given))

    return function, [spec(name, each, sizes) for name, each in feed(inputs).items()]


def feed(inputs):
    """Name -> array, whatever structure the inputs have."""
    return {f"input_{n}": np.asarray(each) for n, each in enumerate(tree.flatten(inputs))}


def exported(function, inputs):
    """The graph of a function in the default profile, and one where that is not portable."""
    graph = converted(function, *inputs)
    yield graph
    if any(node.domain == MICROSOFT for node in graph.nodes):
        graph = converted(function, *inputs, portable=True)
        assert {node.domain for node in graph.nodes} == {""}
        yield graph


def test_no_public_layer_is_left_out():
    made = {case.layer_class for case in CASES if not is_model(case)}
    assert made == {case.layer_class for case in LAYERS}
    assert {case.name for case in LAYERS} >= SHORT


# One for each lowering, and one that leaves op by op of each family; `test_attention.py` has a
# decoder block.
SHORT = {
    "SimpleRNN",
    "LSTM",
    "GRU",
    "RNN(StackedCells)",
    "Bidirectional(LSTM)",
    "QRNN(fo, 2)",
    "Attention(ScaledDotScore)",
    "LocalAttention(predictive)",
    "MultiHeadAttention",
    "BiAttention",
    "CharacterCNN(tanh)",
    "LayerNorm",
    "BahdanauDecoder",
    "EncoderBlock(gelu, True, None)",
    "TreeLSTM(binary)",
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case.name in SHORT else pytest.mark.long) for case in LAYERS],
    ids=lambda case: case.name,
)
def test_a_layer_leaves_as_graphs_that_agree(case):
    function, inputs = signature(case)
    longer = feed(case.padded(case.inputs(), 2))
    for graph in exported(function, inputs):
        onnx.checker.check_model(graph.whole(), full_check=True)
        require_agreement(graph, function, longer, rtol=1e-4, atol=1e-4)
        require_true_sizes(graph, longer)
