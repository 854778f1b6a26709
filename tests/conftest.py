"""Which tests a backend of Keras runs, and which are long; a small run, and its bundle."""

import atexit
import gc
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: one thread is enough for each
    for pool in ("OMP_NUM", "TF_NUM_INTRAOP", "TF_NUM_INTEROP"):
        os.environ.setdefault(f"{pool}_THREADS", "1")
    os.environ.setdefault("NPROC", "1")  # XLA's

import serving  # noqa: F401 (turns onnxruntime's telemetry off)

CHECKOUT = Path(__file__).resolve().parents[1]
BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")
if BACKEND != "tensorflow":  # the library alone: the rest is TensorFlow's and ONNX Runtime's
    collect_ignore = [
        "benchmarks",
        "end_to_end",
        "export",
        "learning",
        "parity",
        "serving",
        "training",
        "seqkeras/analysis",
        "seqkeras/data",
        "test_catalogue.py",
        "test_imports.py",
    ]
if BACKEND == "jax":  # compiles every small operation; the same one only once, with this folder
    compiled = tempfile.mkdtemp(prefix="jax-compiled-")
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", compiled)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")


LONG = {"benchmarks", "journeys", "learning"}  # folders of what `make test-all` alone runs
# What another backend computes otherwise shows in these, on the first case of each layer and model.
ELSEWHERE = {f"test_{name}.py" for name in ("rows", "padding", "past", "steps", "gradients")}


def pytest_collection_modifyitems(items):
    """What is long by its folder or backend; under `pytest -n`, what shares one process."""
    for item in items:
        folders = set(item.path.parent.relative_to(CHECKOUT / "tests").parts)
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        if LONG & folders or (BACKEND != "tensorflow" and _is_long_elsewhere(item, case)):
            item.add_marker(pytest.mark.long)
        if {"dates_run", "dates_bundle"} & set(item.fixturenames):
            group = "dates"
        elif "properties" in item.path.parts and case is not None:
            group = case.name
        else:
            group = item.path.name
        item.add_marker(pytest.mark.xdist_group(group))


def _is_long_elsewhere(item, case):
    if "properties" not in item.path.parts:
        return False
    from tests.catalogue import FIRST

    return item.path.name not in ELSEWHERE or (case is not None and case not in FIRST)


def others_long(cases, short=1):
    """Cases of a parametrized test: `make test` runs the first, `make test-all` the others too."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.long] if place >= short else [],
        )
        for place, case in enumerate(cases)
    ]


def pytest_collection_finish():
    """Spare the garbage collector what the libraries have made while they were imported."""
    gc.collect()
    gc.freeze()


SMALL = (
    "--cell gru --locales de,ja --examples 1280 --in-text 0.1 --passes 1 --batch-size 64 "
    "--units 32 --decoder-units 32 --embedding-dim 16 --learning-rate 0.01 --test-examples 50 "
    "--steps-per-save 10"
).split()


@pytest.fixture(autouse=True)
def _seeded():
    """The same weights and dropout every time: Keras takes its seeds from Python's `random`."""
    random.seed(0)


@pytest.fixture(autouse=True, scope="module")
def _let_go(request):
    """Models, graphs and sessions that the tests of a module share go with the last of them."""
    yield
    for value in vars(request.module).values():
        if hasattr(value, "cache_clear") and value.__module__ == request.module.__name__:
            value.cache_clear()
    gc.collect()


def run_python(*arguments, **options):
    """Run `python ARGUMENTS` in the checkout, as a user does; returns the finished process."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=CHECKOUT,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,
    )


@pytest.fixture(scope="session")
def dates_run(tmp_path_factory):
    """A finished run of the dates task: two locales, a small model, twenty steps."""
    from training.__main__ import main

    folder = tmp_path_factory.mktemp("runs") / "dates"
    assert main(["dates", "--out", str(folder), *SMALL]) == 0
    return folder


@pytest.fixture(scope="session")
def dates_bundle(dates_run, tmp_path_factory):
    """The bundle of `dates_run`."""
    from export.__main__ import main

    folder = tmp_path_factory.mktemp("bundles") / "dates"
    assert main([str(dates_run), str(folder)]) == 0
    return folder
