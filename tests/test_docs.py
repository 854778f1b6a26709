"""docs/layers.md: a row for every public name, and every proof it names is there."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = [
    "recurrent",
    "attention",
    "embeddings",
    "transformer",
    "models",
    "decoding",
    "metrics",
    "analysis",
    "tokenizers",
    "pretrained",
]
ROWS = {
    cells[0].strip("`"): cells
    for cells in (
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in (CHECKOUT / "docs" / "layers.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    )
}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_row(package):
    names = importlib.import_module(f"seqkeras.{package}").__all__
    assert {f"seqkeras.{package}.{name}" for name in names} <= set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_names_what_exists_its_formula_its_source_and_its_proof(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)
    _, formula, source, proof = ROWS[name]
    assert formula and source
    tests = re.findall(r"`(tests/[\w/.]+)`", proof)
    assert tests and all((CHECKOUT / path).exists() for path in tests)


def test_what_the_readme_shows_of_layers_builds_and_compiles():
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    [section] = re.findall(r"### Use the layers\n(.*?)\n### ", readme, re.DOTALL)
    shown = {}
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(block, "README.md", "exec"), shown)
    ids = np.array([[3, 4, 5], [6, 7, 0]])
    assert shown["tagger"](ids).shape == (2, 3, 9)
    inputs = {"token_ids": ids, "lengths": np.array([3, 2]), "target_ids": ids}
    assert shown["model"].train_on_batch(inputs, ids)
