"""Portable graphs hold standard operators only, and answer on ONNX's reference evaluator."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from seqkeras.export.families import plan_export
from seqkeras.export.onnx_graphs import convert
from seqkeras.models import GPT, Bert, ClassificationHead, RNNSeq2Seq, Transformer, WithHeads
from tests.arrays import close, numbers, randomize
from tests.conftest import others_long

V = 19


def exported(model, inputs_shape=None):
    model.build(inputs_shape)
    randomize(model)
    graphs = {}
    for role, each in plan_export(model, max_length=5).graphs.items():
        graph = convert(each.function, each.inputs, each.outputs, role, portable=True)
        assert {node.domain for node in graph.nodes} == {""}
        assert [opset.domain for opset in graph.model.opset_import] == [""]
        graphs[role] = graph
    return graphs


def evaluate(graph, inputs):
    """The outputs of a graph by name, on the reference evaluator."""
    whole = graph.whole()
    names = [output.name for output in whole.graph.output]
    with np.errstate(divide="ignore"):  # it takes the logarithm of a softmax
        return dict(zip(names, ReferenceEvaluator(whole).run(names, inputs), strict=True))


@pytest.mark.long
def test_an_encoder_with_a_head():
    model = WithHeads(Bert(V, 12, 2, 3, 17, max_length=11), {"label": ClassificationHead(3)})
    graphs = exported(model)
    inputs = {
        "token_ids": np.random.default_rng(0).integers(0, V, (3, 7)),
        "lengths": np.array([7, 3, 1]),
        "segment_ids": np.random.default_rng(1).integers(0, 2, (3, 7)),
    }
    close(evaluate(graphs["model"], inputs)["label"], model(inputs)["label"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length, window", others_long([(4, 2), (1, None), (4, None)]))
def test_a_language_model_reads_and_goes_on(length, window):
    model = GPT(V, 12, 2, 3, 17, 11, attention_window=window)
    graph = exported(model)["decoder_step"]
    token_ids = np.random.default_rng(0).integers(0, V, (2, length + 2))
    expected = numbers(model({"token_ids": token_ids}))
    state = {
        f"{part}_{level}": np.zeros((2, 3, 0, 4), "float32")
        for part in ("key", "value")
        for level in range(2)
    }
    for begin, end in ((0, length), (length, length + 1), (length + 1, length + 2)):
        inputs = {"token_ids": token_ids[:, None, begin:end], "k": np.array(3)}
        outputs = evaluate(graph, inputs | {"beam_index": np.array([[0], [1]])} | state)
        state = {name: outputs[f"next_{name}"] for name in state}
        close(outputs["logits"][:, 0], expected[:, end - 1], rtol=1e-4, atol=1e-4)


@pytest.mark.long
def test_an_encoder_decoder_of_attention():
    model = Transformer(V, V, 12, 1, 3, 17, max_length=5)
    graphs = exported(model)
    source = {
        "token_ids": np.random.default_rng(0).integers(0, V, (2, 7)),
        "lengths": np.array([7, 3]),
    }
    state = evaluate(graphs["encoder"], source)
    state |= {name: np.zeros((2, 3, 0, 4), "float32") for name in ("key_0", "value_0")}
    inputs = {"token_ids": np.array([[5], [7]]), "beam_index": np.array([[0], [1]])}
    outputs = evaluate(graphs["decoder_step"], inputs | {"k": np.array(V)} | state)
    (logits, _), _ = model.step(inputs["token_ids"], model.encode(**source))
    close(outputs["logits"], logits, rtol=1e-4, atol=1e-4)


def test_recurrent_layers_stay_native_nodes():
    model = RNNSeq2Seq.bahdanau(V, V, 5, 7, 7, cell="lstm")
    counts = exported(model)["encoder"].node_counts()
    assert counts["LSTM"] == 1
