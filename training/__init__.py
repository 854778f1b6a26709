"""Training: options in, a run folder out."""

import importlib
import sys

from seqkeras import serving  # noqa: F401 (turns onnxruntime's telemetry off)

__all__ = ["answering", "members", "options", "strategies", "task", "tasks", "train"]

if __name__ == "training":  # python -m training, in a checkout
    sys.modules[__name__] = importlib.import_module("seqkeras.training")
