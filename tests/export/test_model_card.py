"""The model card: commands that can be pasted, and what an input may be."""

import json
import shlex
import subprocess
import sys

import pytest

from export.model_card import command
from serving.lines import from_json
from serving.manifest import MANIFEST


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("It's small.", ["It's small."]),
        ("", [""]),
        ("-1 is no option", ["--json-input", '"-1 is no option"']),
        ("two\nlines", ["--json-input", '"two\\nlines"']),
        (("Who?", "Åke’s"), ["--json-input", '["Who?", "Åke’s"]']),
        ({"text": "a", "choices": ["b"]}, ["--json-input", '{"text": "a", "choices": ["b"]}']),
        ([[0.10000000149011612, 2]], ["--json-input", "[[0.1, 2]]"]),
    ],
)
def test_a_command_can_be_pasted(example, expected):
    given = shlex.split(command("my bundles/b", example))
    assert given == ["python", "-m", "serving", "predict", "my bundles/b", *expected]


def test_a_long_input_is_read_from_the_manifest(tmp_path):
    example = [[place / 7] for place in range(1000)]
    (tmp_path / MANIFEST).write_text(json.dumps({"examples": [example, "another"]}))
    line = command(tmp_path, example)
    assert len(line) < 400
    *first, bar, _, _, _, _, bundle, flag = shlex.split(line)
    assert (bar, bundle, flag) == ("|", str(tmp_path), "--json-input")
    found = subprocess.run([sys.executable, *first[1:]], capture_output=True, check=True)
    assert from_json(json.loads(found.stdout)) == tuple(example)
