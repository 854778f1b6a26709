"""Portable graphs hold standard operators only, and answer on ONNX's reference evaluator."""

import numpy as np
import pytest

from seqkeras.export.families import plan_export
from seqkeras.models import GPT, Bert, ClassificationHead, Transformer, WithHeads
from tests.arrays import built, close, numbers
from tests.conftest import others_long
from tests.export.running import evaluate, graphs_of

V = 19
IDS = np.random.default_rng(0).integers(0, V, (2, 7))
BEAM_INDEX = np.array([[0], [1]])


def exported(model):
    graphs = graphs_of(plan_export(built(model), max_length=5).graphs, portable=True)
    for graph in graphs.values():
        assert {node.domain for node in graph.nodes} == {""}
        assert [opset.domain for opset in graph.model.opset_import] == [""]
    return graphs


@pytest.mark.long
def test_an_encoder_with_a_head():
    model = WithHeads(Bert(V, 12, 2, 3, 17, max_length=11), {"label": ClassificationHead(3)})
    graphs = exported(model)
    inputs = {"token_ids": IDS, "lengths": np.array([7, 3]), "segment_ids": IDS % 2}
    close(evaluate(graphs["model"], inputs)["label"], model(inputs)["label"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("positions", others_long(["relative", "bias", "learned"]))
@pytest.mark.parametrize("length, window", others_long([(4, 2), (1, None), (4, None)]))
def test_a_language_model_reads_and_goes_on(length, window, positions):
    model = GPT(V, 12, 2, 3, 17, 11, attention_window=window, positions=positions)
    graph = exported(model)["decoder_step"]
    expected = numbers(model({"token_ids": IDS}))
    names = [f"{part}_{level}" for part in ("key", "value") for level in range(2)]
    state = {name: np.zeros((2, 3, 0, 4), "float32") for name in names}
    state |= {"position": np.zeros((2, 1), "int32")} if window else {}
    for begin, end in ((0, length), (length, length + 1), (length + 1, length + 2)):
        inputs = {"token_ids": IDS[:, None, begin:end], "k": np.array(3)}
        outputs = evaluate(graph, inputs | {"beam_index": BEAM_INDEX} | state)
        state = {name: outputs[f"next_{name}"] for name in state}
        close(outputs["logits"][:, 0], expected[:, end - 1], rtol=1e-4, atol=1e-4)
    assert state["key_1"].shape[2] == (window or end)


@pytest.mark.long
def test_an_encoder_decoder_of_attention():
    model = Transformer(V, V, 12, 1, 3, 17, max_length=5)
    graphs = exported(model)
    source = {"token_ids": IDS, "lengths": np.array([7, 3])}
    state = evaluate(graphs["encoder"], source)
    state |= {name: np.zeros((2, 3, 0, 4), "float32") for name in ("key_0", "value_0")}
    inputs = {"token_ids": np.array([[5], [7]]), "beam_index": BEAM_INDEX, "k": np.array(V)}
    outputs = evaluate(graphs["decoder_step"], inputs | state)
    (logits, _), _ = model.step(inputs["token_ids"], model.encode(**source))
    close(outputs["logits"], logits, rtol=1e-4, atol=1e-4)
