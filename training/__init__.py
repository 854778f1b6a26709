"""Training: options in, a run folder out."""

import serving  # noqa: F401 (turns onnxruntime's telemetry off)
