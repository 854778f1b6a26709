"""What a model's graphs take and give is known without the library that makes them ONNX."""

import subprocess
import sys

from tests.conftest import CHECKOUT

DESCRIBE = """
import sys

import seqkeras.export.checks.loaded, seqkeras.export.pipelines.strings
from seqkeras.export.families import plan_export
from seqkeras.models import GPT
from seqkeras.serving.manifest import DecodingDefaults

parts = plan_export(GPT(11, 6, 1, 2, 7, 5), max_length=3, decoding=DecodingDefaults(2))
for role, signature in {**parts.graphs, **parts.saved_model}.items():
    print(role, *(spec.name for spec in signature.inputs))
print("imported:", *({"tf2onnx", "onnx"} & sys.modules.keys()))
"""


def test_describing_signatures_imports_neither_tf2onnx_nor_onnx():
    finished = subprocess.run(
        [sys.executable, "-c", DESCRIBE], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    *described, imported = finished.stdout.splitlines()
    assert [line.partition(" ")[0] for line in described] == [
        "decoder_step",
        "serving_default",
        "generate",
        "generate_beam",
    ]
    assert imported == "imported:"
