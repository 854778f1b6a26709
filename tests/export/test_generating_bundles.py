"""Bundles that generate in a graph, and on strings: as `serving` does by the run's defaults."""

import dataclasses
import json

import numpy as np
import onnx
import onnxruntime
import pytest

from seqkeras import serving
from seqkeras.export import bundle
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.generation import one_graph
from seqkeras.export.tolerances import Tolerances
from seqkeras.export.verifying import ParityError
from seqkeras.serving.pipelines.pieces import Detokenizer
from seqkeras.tokenizers import pad, read_tokenizer
from tests.zoo import generate, translate


def run_of(make, folder):
    """A run that asks for beams; returns its inputs."""
    inputs = make(folder)
    record = json.loads((folder / "run.json").read_text())
    record["decoding"] |= {"num_beams": 3, "length_penalty": 0.6}
    (folder / "run.json").write_text(json.dumps(record))
    return inputs


def places(file):
    """Where the weights of a graph lie that do not lie in its own file."""
    model = onnx.load(file, load_external_data=False)
    return {
        tuple((each.key, each.value) for each in tensor.external_data)
        for tensor in model.graph.initializer
        if tensor.external_data
    }


@pytest.mark.long
@pytest.mark.parametrize("make", [generate, translate], ids=lambda make: make.__name__)
@pytest.mark.parametrize("precisions", [(), ("int8",)], ids=["portable", "int8"])
def test_one_graph_generates_what_serving_answers_and_its_weights_lie_once(
    make, precisions, tmp_path
):
    inputs = run_of(make, tmp_path / "run")
    options = ExportOptions(
        precisions,
        Tolerances(1.0, 0.0, 10.0),  # random weights: nothing is lost
        portable=not precisions,
        generate_in_graph=True,
        saved_models=False,
        attention_heads=make is translate,
    )
    manifest = export(tmp_path / "run", tmp_path / "bundle", options=options)
    assert 0 < manifest.parity["onnx_generate_difference"] <= 1e-4
    assert 0 < manifest.parity["onnx_beam_difference"] <= 1e-4
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    assert ("standard ONNX operators only" in card) == (not precisions)
    assert ("operators of onnxruntime's own" in card) == bool(precisions)
    assert "| `onnx/generate.onnx`, scores | " in card and "difference |" in card
    assert "onnxruntime alone with `ORT_DISABLE_TELEMETRY=1`" in card
    assert "## `onnx/generate.onnx`\n\nFrom token ids to token ids, by 3 beams" in card
    pipeline = serving.load(tmp_path / "bundle")
    rows = [pipeline.encode(text) for text in inputs]
    rows = [getattr(row, "token_ids", row) for row in rows]
    token_ids, lengths = pad(rows)
    graph = manifest.graphs["generate"]
    session = onnxruntime.InferenceSession(tmp_path / "bundle" / graph.file)
    found = session.run(None, {"token_ids": token_ids, "lengths": lengths})
    answers = pipeline(inputs)
    if make is translate:
        shown = pipeline(inputs[0], attention="heads")
        assert shown.text == answers[0].text
        assert shown.attention.shape[:2] == (2, 2)  # layers, heads
        assert shown.attention.shape[3] == len(shown.source_tokens)
    *_, tokenizer = (
        read_tokenizer(tmp_path / "bundle" / path) for path in manifest.tokenizers.values()
    )
    for row, answer, ids, length, score in zip(rows, answers, *found, strict=True):
        prompt = row if make is generate else []
        ids = ids[len(prompt) : length].tolist()
        assert np.isclose(score, answer.score, rtol=1e-4)
        ids = ids[:-1] if ids[-1] == manifest.decoding.end_id else ids
        assert Detokenizer(tokenizer, prompt).text(ids) == answer.text
    others = [each.file for role, each in manifest.graphs.items() if role != "generate"]
    of_others = set.union(*(places(tmp_path / "bundle" / file) for file in others))
    own = places(tmp_path / "bundle" / graph.file)
    assert own >= of_others != set()
    assert len(own - of_others) < 2  # what the search itself has


@pytest.mark.long
def test_answers_on_strings_and_of_one_graph_are_those_of_the_defaults(tmp_path, monkeypatch):
    run_of(translate, tmp_path / "run")
    whole, make = bundle.text_signatures, one_graph.encoder_decoder

    def greedy_text(pipeline, texts):
        greedy = {name: each for name, each in texts.signatures.items() if name != "generate_beam"}
        return whole(pipeline, dataclasses.replace(texts, signatures=greedy))

    def greedy_graph(graphs, signatures, decoding, *arguments, **options):
        decoding = dataclasses.replace(decoding, num_beams=1)
        return make(graphs, signatures, decoding, *arguments, **options)

    monkeypatch.setattr(bundle, "text_signatures", greedy_text)
    monkeypatch.setattr(one_graph, "encoder_decoder", greedy_graph)
    differ = "onnx_generate (answers|numbers differ) .* saved_model_text (answers|numbers differ) "
    with pytest.raises(ParityError, match=differ):
        export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(generate_in_graph=True))
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
