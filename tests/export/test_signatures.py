"""What a model's graphs take and give is known without the library that makes them ONNX."""

import pytest

from tests.conftest import run_python

DESCRIBE = """
import sys

import seqkeras.export.checks.loaded, seqkeras.export.pipelines.strings
from seqkeras.export.families import plan_export
from seqkeras.models import GPT
from seqkeras.serving.manifest import DecodingDefaults

parts = plan_export(GPT(11, 6, 1, 2, 7, 5), max_length=3, decoding=DecodingDefaults(2))
print(*parts.graphs, *parts.saved_model, "imported:", *({"tf2onnx", "onnx"} & sys.modules.keys()))
"""


@pytest.mark.long
def test_describing_signatures_imports_neither_tf2onnx_nor_onnx():
    finished = run_python("-c", DESCRIBE)
    assert finished.returncode == 0, finished.stderr
    expected = ["decoder_step", "serving_default", "generate", "generate_beam", "imported:"]
    assert finished.stdout.split() == expected
