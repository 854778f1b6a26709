"""The library on the other backends of Keras, each in a process of its own.

JAX compiles every small operation by itself, so all tests would take minutes; what runs here are
the formulas, the gradients and the loops. The others pass too: KERAS_BACKEND=jax python -m pytest
tests/properties tests/seqkeras/{recurrent,attention,models,decoding}
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
TESTS = [
    "tests/seqkeras/recurrent",
    "tests/seqkeras/attention",
    "tests/seqkeras/models",
    "tests/seqkeras/decoding",
    "tests/seqkeras/composites",
]
SELECTION = "(paper or loop or sequentially or learns or nan or (gradients and right)) and not gru"


@pytest.mark.parametrize("backend", ["jax"])
def test_layers_models_and_decoding_hold_on_another_backend(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}: pip install -r requirements-test.txt")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *TESTS, "-k", SELECTION],
        cwd=CHECKOUT,
        env=os.environ
        | {
            "KERAS_BACKEND": backend,
            "JAX_PLATFORMS": "cpu",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        },
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert " passed" in finished.stdout
