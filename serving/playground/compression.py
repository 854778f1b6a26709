"""The files of the page that gzip makes smaller, and the compressed bytes."""

import gzip
from pathlib import Path

# Weights are left out: gzip takes 8 % of float32.
SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".mjs", ".svg", ".wasm"})
LEAST, MOST = 2**10, 2**26  # bytes


def compresses(path: Path, size: int) -> bool:
    """Return whether a file of a size is sent compressed to those who take it."""
    return path.suffix in SUFFIXES and LEAST <= size <= MOST


def compressed(path: Path) -> bytes:
    """Return a file in gzip; the same file has the same bytes each time."""
    return gzip.compress(path.read_bytes(), mtime=0)
