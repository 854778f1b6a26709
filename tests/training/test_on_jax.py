"""The same tasks train on JAX, where TensorFlow is not installed."""

import json
import sys
import types
from pathlib import Path

import pytest

from seqkeras import quiet
from tests.conftest import run_python

IMPORTS = """
import sys

from tests.training.on_jax import Absent

sys.meta_path.insert(0, Absent())
from seqkeras.quiet import import_keras

import_keras()
import importlib
import pkgutil

import seqkeras.training.train
from seqkeras.training import parts

for module in pkgutil.iter_modules(parts.__path__):
    importlib.import_module(f"{parts.__name__}.{module.name}")
"""


ON_JAX = """
from seqkeras.quiet import import_keras

import_keras()
import jax
import keras
import numpy as np

print(float(jax.jit(lambda x: x * 3)(2)))
model_input = keras.Input((None,), dtype="int64")
print(keras.Model(model_input, model_input + 1)(np.array([[3, 5]])).dtype)
"""


def test_every_task_is_imported_where_tensorflow_is_not_installed():
    finished = run_python("-c", IMPORTS)
    assert finished.returncode == 0, finished.stderr


def test_what_is_compiled_is_kept_and_integers_are_narrowed_without_a_warning(tmp_path):
    always = {
        "KERAS_BACKEND": "jax",
        "XDG_CACHE_HOME": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    finished = run_python("-c", ON_JAX, env=always)
    assert (finished.stdout, finished.stderr) == ("6.0\nint32\n", "")
    assert any((tmp_path / "seqkeras/jax").iterdir())


@pytest.mark.parametrize(
    "folder, settings, kept",
    [
        ("caches", {}, True),
        ("caches", {"jax_enable_compilation_cache": False}, False),
        ("caches", {"jax_compilation_cache_dir": "named"}, False),
        ("file", {}, False),  # no folder can be made in it
        (None, {}, False),  # nobody's home
    ],
)
def test_nothing_is_kept_where_jax_is_told_otherwise_or_no_folder_can_be(
    folder, settings, kept, monkeypatch, tmp_path
):
    given = {"jax_compilation_cache_dir": None, "jax_enable_compilation_cache": True}
    given |= {"jax_compilation_cache_max_size": -1} | settings
    config = types.SimpleNamespace(**given)
    config.update = lambda name, value: setattr(config, name, value)
    monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(config=config))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", "" if folder is None else str(tmp_path / folder))

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(quiet.Path, "home", homeless)
    quiet._keep_what_jax_compiles()
    found = config.jax_compilation_cache_dir
    assert found == (
        str(tmp_path / "caches/seqkeras/jax") if kept else given["jax_compilation_cache_dir"]
    )
    assert (config.jax_compilation_cache_max_size == 2**30) == kept


@pytest.mark.long
def test_it_trains_on_one_device_and_two_and_goes_on_bit_for_bit(tmp_path):
    file = tmp_path / "reviews.csv"
    rows = "a fine film,good\na dull and sad one,bad\nfine,good\nit was a dull story,bad\n"
    file.write_text("text,label\n" + 11 * rows)
    lines = ["the old cat sat on the mat.\nit was red.", "a dog ran here.\nthe road was dull."]
    Path(f"{file}.txt").write_text("\n\n".join(20 * lines))
    finished = run_python("-m", "tests.training.on_jax", file, tmp_path)
    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout.splitlines()[-1])
    assert found["two devices"] < 1e-6
    assert found["two sittings"] == found["two sittings of pre-training"] == 0
    assert found["two sittings of rows that go on"] == 0
    assert found["imported"] == []
