"""Bundles of earlier releases: released/VERSION holds the small model of `toy_bundle`, as that
version wrote it."""

import json
from pathlib import Path

import pytest

from seqkeras import serving
from seqkeras.serving.manifest import MANIFEST, SCHEMA_VERSION, read_manifest, read_verified

RELEASED = sorted((Path(__file__).parent / "released").iterdir())
READ = [
    folder
    for folder in RELEASED
    if json.loads((folder / MANIFEST).read_text())["schema_version"] == SCHEMA_VERSION
]


@pytest.mark.parametrize("folder", READ, ids=lambda folder: folder.name)
def test_a_bundle_of_the_same_schema_is_read(folder):
    read_verified(folder)
    assert serving.load(folder)("up|bad").text == "cbe"


@pytest.mark.parametrize("folder", READ, ids=lambda folder: folder.name)
def test_a_schema_has_the_fields_that_it_was_released_with(folder):
    # Another field is refused by a runtime of that release: SCHEMA_VERSION must then be raised.
    content = json.loads((folder / MANIFEST).read_bytes())
    assert json.loads(read_manifest(folder).to_json()) == content


def test_the_first_release_is_there():
    assert RELEASED[0].name == "0.2.0"
