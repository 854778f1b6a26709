"""The library on the other backends of Keras, each in a process of its own."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
TESTS = [
    "tests/properties",
    "tests/seqkeras/recurrent",
    "tests/seqkeras/attention",
    "tests/seqkeras/models",
    "tests/seqkeras/decoding",
    "tests/seqkeras/test_composites.py",
]


@pytest.mark.parametrize("backend", ["jax"])
def test_layers_models_and_decoding_hold_on_another_backend(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}: pip install -r requirements-test.txt")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "-rs", *TESTS],
        cwd=CHECKOUT,
        env={**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
