"""What SECURITY.md says, as far as no other test says it: files that others made run no code."""

import ast
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import onnx
import pytest
from onnx import helper

from seqkeras import serving
from seqkeras.data import DataError, read_arrays
from seqkeras.export import save_run
from seqkeras.export.run import read_run
from seqkeras.runs import ARRAYS, MODEL, REFERENCE, RunError, with_arrays
from seqkeras.runs.reference import Reference
from seqkeras.serving.array_files import inputs_in
from seqkeras.training.checkpoint import load_model
from seqkeras.training.describe import Description, describe
from tests.conftest import CHECKOUT
from tests.serving.pipelines.toys import Toy, write_bundle
from tests.serving.test_external_data import name_weights

PAGE = CHECKOUT / "SECURITY.md"
SOURCES = [
    path
    for folder in ("seqkeras", "training", "export", "serving")
    for path in sorted((CHECKOUT / folder).rglob("*.py"))
    if not {"build", "node_modules"} & {*path.parts}
]
# Modules that run what they read, start programs or fetch files, and who may import them: dates
# read the names of months from the files of the package Babel, and stored examples come from a file
# without a name that the same process has written.
MODULES = dict.fromkeys(
    ("marshal", "shelve", "dill", "joblib", "cloudpickle", "subprocess", "requests", "httpx"), ()
) | {
    "pickle": ("seqkeras/data/date_noise.py", "seqkeras/data/stored.py"),
    "urllib.request": (),
    "http.client": (),
}
NAMES = {"eval", "exec", "enable_unsafe_deserialization", "register_custom_ops_library", "popen"}
OPTIONS = {"allow_pickle": False, "safe_mode": True, "trust_remote_code": False}


def dangers(tree):
    """Yield the module, the name or the option of each node that runs what it reads."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in MODULES)
            case ast.ImportFrom(module=module, names=names):
                yield from {module, *(f"{module}.{each.name}" for each in names)} & MODULES.keys()
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in NAMES:
                yield name
            case ast.Attribute(value=ast.Name(id="os"), attr="system"):
                yield "os.system"
            case ast.keyword(arg=name, value=value) if name in OPTIONS:
                if ast.unparse(value) != str(OPTIONS[name]):
                    yield name


@pytest.mark.parametrize(
    "source, found",
    [
        ("import os, pickle", ["pickle"]),
        ("from pickle import loads", ["pickle"]),
        ("from urllib import request", ["urllib.request"]),
        ("from urllib.parse import quote; re.compile('a')", []),
        ("eval(text)", ["eval"]),
        ("keras.config.enable_unsafe_deserialization()", ["enable_unsafe_deserialization"]),
        ("os.system(text)", ["os.system"]),
        ("np.load(path, allow_pickle=True)", ["allow_pickle"]),
        ("np.load(path, allow_pickle=False)", []),
        ("load_model(path, safe_mode=mode)", ["safe_mode"]),
    ],
)
def test_what_runs_code_is_found(source, found):
    assert [*dangers(ast.parse(source))] == found


def test_no_module_runs_what_it_reads_starts_a_program_or_fetches_a_file():
    found = [
        (path.relative_to(CHECKOUT).as_posix(), name)
        for path in SOURCES
        for name in dangers(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [(path, name) for path, name in found if path not in MODULES.get(name, ())] == []
    assert found  # of Babel's files


class Touches:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


READERS = {
    "an input of predict": lambda path: [*inputs_in(str(path), ("series",))],
    "recordings": lambda path: read_arrays(path, for_each_frame=False),
    "examples of a run": lambda path: with_arrays(
        [{"input": {"array": "array_0"}}], shutil.copy(path, path.with_name(ARRAYS)).parent
    ),
    "answers of a run": lambda path: Reference.read(
        shutil.copy(path, path.with_name(REFERENCE)).parent
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_arrays_of_objects_are_refused_and_not_unpickled(reader, tmp_path):
    file, touched = tmp_path / "given.npz", tmp_path / "touched"
    objects = np.array([Touches(touched)], object)
    np.savez(file, **{"frames": objects, "labels": objects, "array_0": objects, "0/a": objects})
    with pytest.raises((DataError, RunError, ValueError), match="allow_pickle=False"):
        READERS[reader](file)
    assert not touched.exists()


@pytest.fixture
def run(tmp_path):
    """A run of a model of one layer."""
    model = keras.Sequential([keras.Input((None, 3)), keras.layers.Dense(2)])
    given = {"validation": [{"input": [1.5]}], "limits": {"source_length": 7}}
    save_run(tmp_path / "run", model, "Forecast", **given, check_export=False)
    return tmp_path / "run"


LOADERS = {
    "export": read_run,
    "evaluate": lambda run: load_model(run / MODEL, "train again"),
    "describe": lambda run: describe(Description(str(run), None)),
}


@pytest.mark.parametrize("loader", LOADERS)
def test_a_model_with_a_function_of_python_is_refused_and_the_function_not_run(
    loader, run, tmp_path
):
    touched, name = tmp_path / "touched", str(tmp_path / "touched")
    # A loaded function has builtins alone.
    function = keras.layers.Lambda(lambda x: (__import__("pathlib").Path(name).touch(), x)[1])
    keras.Sequential([keras.Input((None, 3)), function]).save(run / MODEL)
    touched.unlink()  # made while Keras called the layer
    with pytest.raises(RunError, match=r"(?s)model\.keras: .*Lambda"):
        LOADERS[loader](run)
    assert not touched.exists()


@pytest.mark.parametrize("loader", LOADERS)
def test_a_module_that_a_model_names_is_not_imported(loader, run, tmp_path, monkeypatch):
    touched = tmp_path / "touched"
    (tmp_path / "intruder.py").write_text(f"open({str(touched)!r}, 'w')\nclass Dense: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    with zipfile.ZipFile(run / MODEL) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    config["config"]["layers"][-1] |= {"module": "intruder", "registered_name": None}
    with zipfile.ZipFile(run / MODEL, "w") as archive:
        for name, content in (parts | {"config.json": json.dumps(config)}).items():
            archive.writestr(name, content)
    with pytest.raises(RunError, match=r"(?s)model\.keras: .*[Tt]rain again"):
        LOADERS[loader](run)
    assert not touched.exists() and "intruder" not in sys.modules


def test_a_graph_with_an_operator_of_another_library_is_refused(tmp_path):
    folder = write_bundle(tmp_path / "toy", "Embed", Toy(3).graph("pooled"))
    model = onnx.load(folder / "onnx/model.onnx")
    model.graph.node[0].domain = "intruder"
    model.opset_import.append(helper.make_opsetid("intruder", 1))
    onnx.save(model, folder / "onnx/model.onnx")
    name_weights(folder)  # which lists the files anew, with their sha256
    with pytest.raises(serving.BundleError, match="can not open it: .*intruder"):
        serving.load(folder)


@pytest.mark.parametrize("location", ["*/_ORT_MEM_ADDR_/*", "../outside", "/etc/passwd"])
def test_weights_outside_of_a_bundle_are_refused_even_if_the_manifest_names_them(
    location, tmp_path
):
    folder = write_bundle(tmp_path / "toy", "Embed", Toy(3).graph("pooled"))
    with pytest.raises(serving.BundleError, match="must lie inside the bundle"):
        name_weights(folder, f"onnx/{location}")


def test_the_page_names_tests_that_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE.read_text(encoding="utf-8"))
    assert named and all((CHECKOUT / path).is_file() for path in named)
