"""Whoever checks the types of a program that uses serving is told what is there."""

import inspect
import tomllib
from pathlib import Path

import pytest
from mypy import api

from seqkeras import serving
from seqkeras.serving import decoding, manifest, results, session, text
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.pipelines.model import Model

ROOT = Path(__file__).parents[2]
MODULES = (serving, manifest, text)
FOUND = [getattr(module, name) for module in MODULES for name in module.__all__]
FOUND += [each for each in vars(decoding).values() if not inspect.ismodule(each)]
FOUND += [*PIPELINES.values(), Runtime, Model, session.EncoderDecoder, session.LanguageModel]
FOUND += [each for each in vars(results).values() if inspect.isclass(each)]
PUBLIC = {each.__qualname__: each for each in FOUND if callable(each)}
PROGRAM = """
from seqkeras import serving
from seqkeras.serving.pipelines import Translate

pipeline = serving.load("bundles/dates", precision="int8", threads=2, providers=["CUDA"])
assert isinstance(pipeline, Translate)
reveal_type(pipeline("a"))
reveal_type(pipeline(["a"], num_beams=2))
reveal_type(pipeline("a").text)
reveal_type(pipeline.stream("a"))
reveal_type(pipeline.manifest.limits.source_length)
serving.load(5)
pipeline(7)
pipeline("a").txt
"""
REVEALED = [
    '"seqkeras.serving.results.Translation"',
    '"list[seqkeras.serving.results.Translation]"',
    '"str"',
    '"typing.Iterator[str]"',
    '"int"',
]


def functions(public):
    """The functions that callers of a public function or class call."""
    if not inspect.isclass(public):
        return [public] if inspect.isfunction(public) else []
    found = []
    for name, member in vars(public).items():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        is_public = not name.startswith("_") or name in ("__init__", "__call__")
        own = inspect.isfunction(function) and function.__module__.startswith("seqkeras.serving")
        if is_public and own:
            found.append(function)
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_says_what_it_takes_and_gives(name):
    for function in functions(PUBLIC[name]):
        signature = inspect.signature(function)
        untyped = [
            each.name
            for each in signature.parameters.values()
            if each.annotation is each.empty and each.name not in ("self", "cls")
        ]
        assert (function.__qualname__, untyped) == (function.__qualname__, [])
        typed = signature.return_annotation is not signature.empty
        assert typed or function.__name__ == "__init__", function.__qualname__


def test_the_wheel_says_that_it_is_typed():
    content = tomllib.loads((ROOT / "serving/pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in content["tool"]["setuptools"]["package-data"]["seqkeras_serving"]
    assert (ROOT / "serving/py.typed").is_file()


@pytest.mark.long
def test_a_type_checker_knows_the_answers_and_finds_mistakes(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    (tmp_path / "program.py").write_text(PROGRAM)
    output, _, status = api.run(["--cache-dir", str(tmp_path), str(tmp_path / "program.py")])
    assert status == 1
    notes = [line for line in output.splitlines() if "Revealed type" in line]
    assert [line.partition(" type is ")[2] for line in notes] == REVEALED
    errors = [line for line in output.splitlines() if ": error: " in line]
    assert len(errors) == 3
    for line, expected in zip(
        errors, ('Argument 1 to "load"', "No overload variant", 'no attribute "txt"')
    ):
        assert expected in line
