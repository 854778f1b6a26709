"""Small arrays that other libraries computed, kept so that a test needs only NumPy to read them.

A file for each family; `make() -> {name: array}` computes the arrays with the rival library, and
`make vectors` (`python -m tests.vectors`) writes them to an `.npz` beside the file.
"""

import importlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
FAMILIES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def make(family):
    """Compute a family's arrays anew, by name; needs requirements-parity.txt."""
    return importlib.import_module(f"tests.vectors.{family}").make()


def in_both_dtypes(cases):
    """Arrays by `case/dtype/name`, from functions of a dtype by case."""
    return {
        f"{case}/{dtype}/{name}": array
        for case, compute in cases.items()
        for dtype in ("float32", "float64")
        for name, array in compute(dtype).items()
    }


def load(family):
    """The stored arrays of a family, by name."""
    with np.load(FOLDER / f"{family}.npz") as file:
        return dict(file)
