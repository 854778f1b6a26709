"""Benchmarks: ours and a rival in turn, in one run; `python -m benchmarks.NAME --help`."""
