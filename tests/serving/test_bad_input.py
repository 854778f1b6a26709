"""What is wrong with a bundle, an option or an input is said in one line, by all pipelines alike.

Texts of the pipelines that answer in a single pass: `pipelines/test_inputs.py`; series:
`pipelines/test_forecast.py`; a bundle that is replaced while others load it: `test_loading.py`.
"""

import dataclasses
import json
import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import DecodingDefaults, read_manifest, write_manifest
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.text import BOS, EOS, CharacterTable
from tests.conftest import run_python
from tests.serving import toy_bundle
from tests.serving.pipelines import toys
from tests.serving.pipelines.test_forecast import graph as forecast_graph
from tests.serving.pipelines.test_inputs import PIPELINES as OF_TEXTS
from tests.serving.toy_language_model import ToyLanguageModel
from tests.serving.toy_language_model import write_bundle as write_language_model

TABLE = CharacterTable.learn(["abcdefg"])
LIMIT = 17
ROLES = {"Translate": "encoder", "Generate": "decoder_step"}  # of all others "model"
# What the pipelines that generate are asked: a text, and where it stands in an error.
GENERATING = {
    "Translate": (lambda text: f"up|{text}", "Translate: text", "characters"),
    "Generate": (lambda text: text, "Generate: prompt", "tokens"),
}
every_pipeline = pytest.mark.parametrize("name", PIPELINES)
generating = pytest.mark.parametrize("name", GENERATING)


def write_bundle(name, folder):
    if name == "Translate":
        return toy_bundle.write_bundle(folder)
    if name == "Generate":
        decoding = DecodingDefaults(start_id=BOS, end_id=EOS)
        model = ToyLanguageModel(len(TABLE), LIMIT)
        return write_language_model(folder, model, TABLE, decoding=decoding)
    if name == "Forecast":
        return toys.write_bundle(folder, name, forecast_graph(), tokenizers={})
    graph, settings, *_ = OF_TEXTS[name]
    return toys.write_bundle(folder, name, graph, settings)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A whole bundle of every pipeline, to read only."""
    parent = tmp_path_factory.mktemp("bundles")
    return {name: write_bundle(name, parent / name) for name in PIPELINES}


def refused(message):
    return pytest.raises(serving.BundleError, match=message)


@every_pipeline
def test_no_inputs_have_no_answers(name, folders):
    assert serving.load(folders[name], threads=1)([]) == []


@every_pipeline
def test_an_unknown_precision_is_refused_with_those_there_are(name, folders):
    message = "^load: precision must be one of the bundle's, float32; received 'int3'.$"
    with pytest.raises(ValueError, match=message):
        serving.load(folders[name], precision="int3")


@every_pipeline
def test_an_unknown_provider_is_refused_with_those_there_are(name, folders):
    message = r"^load: providers must be of this onnxruntime .*, which has .*CPU.*; received 'TPU'"
    with pytest.raises(ValueError, match=message):
        serving.load(folders[name], providers=["TPU"])


def edit_manifest(folder, **fields):
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@every_pipeline
def test_a_newer_schema_is_refused_with_the_way_to_upgrade(name, tmp_path):
    folder = write_bundle(name, tmp_path / "toy")
    edit_manifest(folder, schema_version=99)
    with refused(r"has schema 99; this seqkeras-serving reads up to \d+. Upgrade seqkeras-serving"):
        serving.load(folder)


@generating
def test_a_text_far_over_the_limit_is_refused_before_it_is_split(name, folders, monkeypatch):
    given, where, _ = GENERATING[name]
    monkeypatch.setattr(CharacterTable, "encode", None)
    text = given("a" * 10**7)
    message = f"^{where} has {len(text)} characters; the limit is .* tokens. Nothing was truncated"
    with pytest.raises(ValueError, match=message):
        serving.load(folders[name])(text)


def change_graph(folder, role, change):
    """Change the inputs that the manifest says a graph has."""
    manifest = read_manifest(folder)
    graph = manifest.graphs[role]
    graph = dataclasses.replace(graph, inputs=tuple(map(change, graph.inputs)))
    write_manifest(folder, dataclasses.replace(manifest, graphs=manifest.graphs | {role: graph}))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "ids"}, "input ids is in the manifest only"),
        ({"dtype": "int8"}, r"input (\w+) is (int64|float32) \(.*\), not int8 \(.*\)"),
        ({"shape": ("batch",) * 7}, r"input (\w+) is .*, not \w+ \(batch(, batch){6}\)"),
    ],
)
@every_pipeline
def test_a_graph_with_other_inputs_than_the_manifests_is_refused(name, change, problem, tmp_path):
    folder, role = write_bundle(name, tmp_path / "toy"), ROLES.get(name, "model")
    first = read_manifest(folder).graphs[role].inputs[0].name
    change_graph(
        folder,
        role,
        lambda spec: dataclasses.replace(spec, **change) if spec.name == first else spec,
    )
    with refused(rf"onnx/{role}\.onnx is not the {role} graph expected: .*{problem}.* again\.$"):
        serving.load(folder)


@every_pipeline
def test_a_graph_that_is_not_there_is_named(name, tmp_path):
    folder, role = write_bundle(name, tmp_path / "toy"), ROLES.get(name, "model")
    graphs = json.loads((folder / "manifest.json").read_text())["graphs"]
    del graphs[role]
    edit_manifest(folder, graphs=graphs)
    with refused(f"manifest.json: no {role} graph is named. Export the bundle again.$"):
        serving.load(folder)


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "\u0627\u0644 \u202e\u05d7\u05ea\u202c",
        "\U0001f468\u200d\U0001f469 e\u0301",
        "\u732b\u304c",
        "a\ufeff\ufffd\x7f",
        "a\ud800b",
    ],
    ids=["nul", "right to left", "emoji", "no spaces", "controls", "lone surrogate"],
)
@generating
def test_characters_that_are_not_known_are_answered(name, text, folders):
    given, *_ = GENERATING[name]
    pipeline = serving.load(folders[name], threads=1)
    answer = pipeline(given(text))
    assert np.isfinite(answer.score)
    together, _ = pipeline([given(text), given("bad")])
    assert together.text == answer.text


@generating
def test_a_million_characters_are_refused_in_one_short_line_unless_they_may_be_cut(name, folders):
    given, where, unit = GENERATING[name]
    pipeline, text = serving.load(folders[name], threads=1), given("a" * 10**6)
    message = rf"^{where} has {len(text)} {unit}; .*limit is \d+\. Nothing was truncated: shorten"
    with pytest.raises(ValueError, match=message) as caught:
        pipeline(text)
    assert len(str(caught.value)) < 200
    room = {"max_new_tokens": 3} if name == "Generate" else {}
    assert np.isfinite(pipeline(text, truncate=True, **room).score)


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (["Tag", "--precision", "int3"], "", "load: precision must be one of the bundle's"),
        (["Tag", "--provider", "TPU"], "", "load: providers must be of this onnxruntime"),
        (["Embed"], "the cat " * 125_000, "standard input, line 1: text has "),
        (["Translate"], "up|" + "a" * 10**6, "standard input, line 1: text has 1000003 char"),
        (["Embed", "--json-input"], r'"the \ud800 cat"', "standard input, line 1: text must ho"),
        (["Forecast"], "[[1, 2, NaN]]", "standard input, line 1: "),
        (["Missing"], "", "no such"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_line_says_it_in_one_line(arguments, given, message, folders):
    name, *options = arguments
    folder = folders["Tag"].parent / name
    finished = run_python("-m", "serving", "predict", folder, *options, input=given)
    in_place = "\n" if message.startswith("standard input") else ""  # of the line's answer
    assert (finished.returncode, finished.stdout) == (1, in_place)
    assert re.fullmatch(f"seqkeras-serving: .*{re.escape(message)}.*\n", finished.stderr)
    assert len(finished.stderr) < 400
