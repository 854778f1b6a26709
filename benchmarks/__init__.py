"""Benchmarks: ours and a rival in turn, in one run; `python -m benchmarks.NAME --help`."""

from seqkeras import serving  # noqa: F401 (turns onnxruntime's telemetry off)
