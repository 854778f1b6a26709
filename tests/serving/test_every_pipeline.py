"""What holds for all pipelines alike; for texts of a single pass: `pipelines/test_inputs.py`."""

import concurrent.futures
import dataclasses

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import read_manifest, write_manifest
from seqkeras.serving.printing import as_line
from seqkeras.serving.text import CharacterTable
from tests.serving.zoo import INPUTS, STRANGE, write

ROLES = {"letters": "encoder", "generator": "decoder_step"}  # of all others "model"
# What the pipelines that generate are asked: a text, and where it stands in an error.
GENERATING = {
    "letters": (lambda text: f"up|{text}", "Translate: text", "characters"),
    "generator": (lambda text: text, "Generate: prompt", "tokens"),
}
every_pipeline = pytest.mark.parametrize("name", [name for name in INPUTS if name != "number"])
generating = pytest.mark.parametrize("name", GENERATING)


@every_pipeline
def test_eight_threads_share_a_pipeline_and_no_inputs_have_no_answers(name, folders):
    pipeline = serving.load(folders[name])
    assert pipeline([]) == []
    values = INPUTS[name] * 5
    if name in ("answers", "choices", "classes"):
        values = [tuple(value) if isinstance(value, list) else value for value in values]
    options = {"num_beams": 3} if name in GENERATING else {}
    expected = [as_line(answer) for answer in pipeline(values, **options)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for answers in pool.map(lambda _: pipeline(values, **options), range(24)):
            assert [as_line(answer) for answer in answers] == expected


@every_pipeline
def test_a_graph_that_is_another_or_not_there_is_named(name, tmp_path):
    folder, role = write(name, tmp_path / "toy"), ROLES.get(name, "model")
    manifest = read_manifest(folder)
    graph, graphs = manifest.graphs[role], manifest.graphs.copy()
    first = dataclasses.replace(graph.inputs[0], name="ids")
    graphs[role] = dataclasses.replace(graph, inputs=(first, *graph.inputs[1:]))
    write_manifest(folder, dataclasses.replace(manifest, graphs=graphs))
    problem = "input ids is in the manifest only"
    message = rf"onnx/{role}\.onnx is not the {role} graph expected: .*{problem}.* again\.$"
    with pytest.raises(serving.BundleError, match=message):
        serving.load(folder)
    del graphs[role]
    write_manifest(folder, dataclasses.replace(manifest, graphs=graphs))
    message = f"manifest.json: no {role} graph is named. Export the bundle again.$"
    with pytest.raises(serving.BundleError, match=message):
        serving.load(folder)


@generating
def test_characters_that_are_not_known_are_answered(name, folders):
    given, *_ = GENERATING[name]
    pipeline = serving.load(folders[name], threads=1)
    for kind, text in {**STRANGE, "lone surrogate": "a\ud800b"}.items():
        answer = pipeline(given(text))
        assert np.isfinite(answer.score), kind
        together, _ = pipeline([given(text), given("bad")])
        assert together.text == answer.text


@generating
def test_a_million_characters_are_refused_unsplit_unless_they_may_be_cut(
    name, folders, monkeypatch
):
    given, where, unit = GENERATING[name]
    pipeline, text = serving.load(folders[name], threads=1), given("a" * 10**6)
    message = rf"^{where} has {len(text)} {unit}; .*limit is \d+\. Nothing was truncated: shorten"
    with pytest.raises(ValueError, match=message) as caught:
        pipeline(text)
    assert len(str(caught.value)) < 200
    room = {"max_new_tokens": 3} if name == "generator" else {}
    assert np.isfinite(pipeline(text, truncate=True, **room).score)
    monkeypatch.setattr(CharacterTable, "encode", None)
    text = given("a" * 10**7)
    message = f"^{where} has {len(text)} characters; the limit is .* tokens. Nothing was truncated"
    with pytest.raises(ValueError, match=message):
        pipeline(text)
