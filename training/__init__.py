"""Training: options in, a run folder out."""

import importlib
import sys

from seqkeras import serving  # noqa: F401 (turns onnxruntime's telemetry off)

if __name__ == "training":  # python -m training, in a checkout
    sys.modules[__name__] = importlib.import_module("seqkeras.training")
