"""Export: a trained run becomes a bundle of ONNX graphs and SavedModels."""

import serving  # noqa: F401 (turns onnxruntime's telemetry off)
