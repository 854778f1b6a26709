"""The model card: commands that can be pasted, and what an input may be."""

import shlex
from types import SimpleNamespace

import pytest

from seqkeras.export.card import about_operators, command
from seqkeras.export.onnx_files import save
from seqkeras.serving.manifest import GraphFile, Precision
from tests.export.written import graph


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
    given = shlex.split(command("my bundles/b", [example]))
    assert given == ["seqkeras", "predict", "my bundles/b", *expected]


def test_a_long_input_is_an_example_of_the_bundle(tmp_path):
    example = [[place / 7] for place in range(1000)]
    assert command(tmp_path, [example]) == f"seqkeras predict {tmp_path} --examples"


def test_whose_operators_there_are_is_said_of_each_precision(tmp_path):
    for name, operator in (("own", "Gelu"), ("standard", "Tanh")):
        made = graph([(operator, ["x"], ["y"], {})], {"x": ["length"]}, {"y": ["length"]}, {})
        made.declare_domains()
        save({name: made}, tmp_path)
    own, standard = ({"model": GraphFile(f"{name}.onnx", (), ())} for name in ("own", "standard"))
    mixed = SimpleNamespace(graphs=standard, precisions={"int8": Precision(own, {})})
    said = about_operators(tmp_path, mixed)
    assert "The graphs in float32 have standard ONNX operators only." in said
    assert "The graphs in int8 have operators of onnxruntime's own" in said
    alike = SimpleNamespace(graphs=own, precisions={"int8": Precision(own, {})})
    assert about_operators(tmp_path, alike).startswith("\nThe graphs in float32, int8 have operat")
