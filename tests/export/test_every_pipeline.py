"""From a model of each kind to its bundle and to an answer."""

import dataclasses
import json
import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export import bundle
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.measuring import PrecisionError
from seqkeras.export.tolerances import UNLIMITED, Tolerances
from seqkeras.serving.manifest import read_manifest, verify_files
from seqkeras.serving.printing import as_line
from tests.conftest import in_shell, others_long
from tests.zoo import MAKERS, TEXTS, classify, generate, regress, translate

INT8 = ExportOptions(precisions=("int8",), tolerances=UNLIMITED, saved_models=False)


@pytest.mark.parametrize("make", others_long(MAKERS), ids=lambda make: make.__name__)
def test_a_run_becomes_a_bundle_that_answers(make, tmp_path, request):
    if make is classify:
        folder, inputs = request.getfixturevalue("classifier_bundle"), TEXTS
    else:
        folder, inputs = tmp_path / "bundle", make(tmp_path / "run")
        export(tmp_path / "run", folder)
    manifest = read_manifest(folder)
    verify_files(folder, manifest)
    differences = [v for name, v in manifest.parity.items() if name.endswith("_difference")]
    assert len(differences) >= 2  # ONNX and SavedModel
    assert 0 <= max(differences) <= 1e-4
    if "saved_model_text/1" in manifest.saved_models:
        assert manifest.parity["saved_model_text_refused"] == 0
        said = (folder / "tensorflow_serving/README.md").read_text(encoding="utf-8")
        assert make is not classify or "U+FDD0 to U+FDEF is refused" in said
    answers = serving.load(folder)(inputs)
    assert len(answers) == len(inputs)
    card = (folder / "README.md").read_text(encoding="utf-8")
    [command] = [line for line in card.splitlines() if line.startswith("seqkeras ")]
    # Where the card says that it works. Numbers of a batch differ in their last digits from those
    # of an input alone.
    found, expected = in_shell(command, folder.parent).split(), as_line(answers[0]).split()
    assert [each[:5] for each in found[: len(expected)]] == [each[:5] for each in expected]


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "scored"),
    [
        (classify, (["accuracy"], 4)),
        (generate, ([], None)),
        (translate, (["chrF", "exact match"], 6)),
        (regress, ([], None)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_another_precision_answers_too(make, scored, tmp_path):
    inputs = make(tmp_path / "run")
    manifest = export(tmp_path / "run", tmp_path / "bundle", options=INT8)
    figures = manifest.precisions["int8"].figures
    answers = serving.load(tmp_path / "bundle", precision="int8")(inputs)
    assert len(answers) == len(inputs)
    if make is regress:  # a single number is always its own best: its size is measured
        expected, actual = (
            np.array([each.score for each in several])
            for several in (serving.load(tmp_path / "bundle")(inputs), answers)
        )
        relative = np.linalg.norm(actual - expected) / np.linalg.norm(expected)
        assert figures["relative_difference"] == pytest.approx(relative, rel=1e-2)
        assert 0 < relative < 0.2 and "agreement" not in figures
        return
    names, examples = scored
    assert [*figures.get("scores", ())] == [*figures.get("float32_scores", ())] == names
    assert figures.get("scored_examples") == examples
    assert all(0 <= each <= 1 for each in figures.get("scores", {}).values())
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    columns = [*names, "agreement with float32", "log-probabilities off: mean, largest"]
    assert f"| {' | '.join(columns)} |" in card
    assert (f"Scores of float32, on {examples} examples: " in card) == bool(names)


def translate_to_nothing_known(folder):
    """A translator whose score is 0: targets of characters that it can not write."""
    translate(folder)
    path = folder / "validation.json"
    examples = json.loads(path.read_text())
    path.write_text(json.dumps([{**each, "target": "0123"} for each in examples]))


@pytest.mark.long
def test_a_precision_of_which_no_score_tells_is_refused_or_marked(tmp_path, broken):
    translate_to_nothing_known(tmp_path / "run")
    folder, options = tmp_path / "bundle", dataclasses.replace(INT8, tolerances=Tolerances())
    off = r"^int8: its (agreement|log-probabilities) .*, by --.*\)\. Leave it out, or allow more\.$"
    with pytest.raises(PrecisionError, match=off):
        export(tmp_path / "run", folder, options=options)
    assert not folder.exists()
    figures = export(tmp_path / "run", folder, options=INT8).precisions["int8"].figures
    assert figures["float32_scores"] == {"chrF": 0, "exact match": 0}
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "No score says how good the answers are: a precision was refused where its " in card
    assert re.search(r"\*\*int8 is worse than the defaults allow: its (agree|log-prob)", card)


@pytest.fixture
def broken(monkeypatch):
    """Graphs in other precisions compute with the negative of their weights."""
    quantize = bundle.quantize

    def negative(graphs, precision):
        made = quantize(graphs, precision)
        for graph in made.values():
            for name in graph.constants:
                if name.endswith("/scales"):
                    graph.constants[name] = -graph.constants[name]
        return made

    monkeypatch.setattr(bundle, "quantize", negative)
